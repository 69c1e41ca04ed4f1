"""shard_map: one program for each device, with collectives between them; pmap."""
