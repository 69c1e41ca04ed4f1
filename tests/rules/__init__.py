"""The rules of every first-order primitive: values, derivatives, batches."""
