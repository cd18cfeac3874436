"""Results as pages: one HTML file each, which shows the same with no network, by day and by night."""
