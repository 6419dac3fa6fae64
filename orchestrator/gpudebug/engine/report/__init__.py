"""`gpudebug report`: the whole campaign as a page that stands alone, a picture, or Markdown."""
