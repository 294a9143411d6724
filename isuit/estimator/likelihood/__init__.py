"""The likelihood with skill integrated out, its information and its maximum."""
