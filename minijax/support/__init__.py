"""What every room uses: settings, events, effects, dtypes, trees, errors."""
