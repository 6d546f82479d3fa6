// A build without libFLAC: libsndfile may read the file.
#include "media/codec/codec.h"

namespace calque {

bool decode_flac(const SoundSource&, Waveform&) { return false; }

}  // namespace calque
