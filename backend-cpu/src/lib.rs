//! The embedded CPU backend of zyx.
