#include "trace/capture_scope.h"

#include "trace/recorder.h"

namespace calque {

CaptureScope::Exporting::Exporting() : cudnn(false) {}
CaptureScope::Recording::Recording(Recorder& r) : recorder(&r), calls(r), graphs(&r), arithmetic(&r), regions(&r) {}

CaptureScope::CaptureScope(const Capture& capture) {
  if (capture.exporting) exporting_.emplace();
  if (capture.composites) composites_.emplace(*capture.composites);
  if (capture.python_bodies) python_bodies_.emplace();
  if (capture.fake) fake_.emplace(*capture.fake);
  if (capture.recorder) recording_.emplace(*capture.recorder);
  if (capture.symbolic) symbolic_.emplace(*capture.symbolic);
  if (capture.modules) modules_.emplace(*capture.modules);
  if (capture.every_cast) every_cast_.emplace();
}

}  // namespace calque
