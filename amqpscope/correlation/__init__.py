"""What joins the connections of one capture set: summaries of connections in, findings out."""
