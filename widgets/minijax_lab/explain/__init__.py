"""Recordings: plain, versioned data about one program or one run, for views to draw."""
