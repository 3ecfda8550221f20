"""An owner's world as one object, opened from a pool and closed again when nobody uses it."""
