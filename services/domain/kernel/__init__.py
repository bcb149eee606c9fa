"""The inside of the time kernel: how records become spans. Outside, use services/domain/timeline.py."""
