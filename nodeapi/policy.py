"""What browsers may do with our pages; see `keys.policy`, where the pages begin."""

from keys.policy import CONTENT_SECURITY_POLICY, without_scripts

__all__ = ["CONTENT_SECURITY_POLICY", "without_scripts"]
