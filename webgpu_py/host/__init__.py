"""What only a desktop needs: the command line, the development server, a headless browser."""
