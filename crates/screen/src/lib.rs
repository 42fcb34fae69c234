//! VT state, keyframe, history lines, repaint and text view
