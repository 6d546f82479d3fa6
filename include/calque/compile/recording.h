// Recordings: a graph that a backend failed on, as a file that the program `calque replay` runs again. Written where a folder for them was set, by set_recording_folder or by the
// variable CALQUE_RECORD=FOLDER. Weights are not in it: what counts are their sizes and dtypes.
#pragma once

#include <string>

namespace calque {

void set_recording_folder(const std::string& folder);  // "" for none

struct Recording {
  std::string function, backend, error, graph;     // `backend` is empty for a function of the user's
  static Recording read(const std::string& path);  // UserError (bad_file)
};

struct Replayed {
  std::string error;     // empty: it did not fail
  bool is_same = false;  // the recorded one
};
// Gives the graph to the backend again; to `backend` where that is not empty.
Replayed replay(const Recording& recording, const std::string& backend = {});

}  // namespace calque
