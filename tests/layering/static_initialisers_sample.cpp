// What static_initialisers.sh must find: a call into another file while the program starts.
namespace calque {

bool defined_elsewhere();
extern const bool sample_is_registered;
const bool sample_is_registered = defined_elsewhere();

}  // namespace calque
