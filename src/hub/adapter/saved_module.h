// Modules that an adapter trains beside its layers: whole ones (modules_to_save), of which each adapter has a copy, and rows of an
// embedding (trainable_token_indices).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hub/adapter/tuner_layer.h"

namespace calque::adapter {

class SavedModule : public Module {
 public:
  virtual std::vector<std::string> adapters() const = 0;
  bool has_adapter(const std::string& name) const;
  // Of the named adapters the one that is here; UserError for two.
  virtual void set_active(const std::vector<std::string>& names, bool trains) = 0;
  virtual void enable(bool enabled) { enabled_ = enabled; }
  virtual void delete_adapter(const std::string& name) = 0;
  // Names of an adapter's state: in its file, and here.
  virtual std::vector<std::pair<std::string, std::string>> state_names(const std::string& adapter) const = 0;
  // What stays in the model when adapters go.
  virtual std::shared_ptr<Module> unloaded(bool merge, const std::vector<std::string>& names, bool safe) = 0;
  virtual void merge(const std::vector<std::string>&, bool) {}
  virtual void unmerge() {}

 protected:
  SavedModule() = default;
  SavedModule(const SavedModule&) = default;
  // Of these names the adapter that is here; "" for none.
  std::string one_of(const std::vector<std::string>& names) const;

  std::string active_;  // "" for none
  bool enabled_ = true;
};

// PEFT's ModulesToSaveWrapper.
class WholeModule final : public SavedModule {
 public:
  explicit WholeModule(std::shared_ptr<Module> original);
  std::string type_name() const override { return "peft.utils.other.ModulesToSaveWrapper"; }
  std::vector<std::string> argument_names() const override { return now().argument_names(); }
  ForwardSignature forward_signature() const override { return now().forward_signature(); }
  Module* wrapped_module() const override { return &now(); }
  Value forward_values(const Values& args, const Kwargs& kwargs) override;

  void add(const std::string& adapter);
  std::vector<std::string> adapters() const override;
  void set_active(const std::vector<std::string>& names, bool trains) override;
  void delete_adapter(const std::string& name) override;
  std::vector<std::pair<std::string, std::string>> state_names(const std::string& adapter) const override;
  std::shared_ptr<Module> unloaded(bool merge, const std::vector<std::string>& names, bool safe) override;

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new WholeModule(*this)); }
  Module& now() const;

  Child<Module> original_;
  Child<ModuleDict> copies_;
};

// Rows of an embedding (or of the head tied to it) that an adapter has its own of, PEFT's TrainableTokensLayer.
class TokenRows;

class TokensModule final : public SavedModule {
 public:
  // With `tied` the rows are those of another one.
  explicit TokensModule(std::shared_ptr<Module> original, const TokensModule* tied = nullptr);
  std::string type_name() const override { return "peft.utils.other.TrainableTokensWrapper"; }
  std::vector<std::string> argument_names() const override;
  ForwardSignature forward_signature() const override;
  Module* wrapped_module() const override;
  Value forward_values(const Values& args, const Kwargs& kwargs) override;

  void add(const std::string& adapter, const std::vector<int64_t>& rows);
  std::vector<std::string> adapters() const override;
  void set_active(const std::vector<std::string>& names, bool trains) override;
  void enable(bool enabled) override;
  void delete_adapter(const std::string& name) override;
  std::vector<std::pair<std::string, std::string>> state_names(const std::string& adapter) const override;
  std::shared_ptr<Module> unloaded(bool merge, const std::vector<std::string>& names, bool safe) override;
  void merge(const std::vector<std::string>& names, bool safe) override;
  void unmerge() override;
  std::vector<int64_t> rows_of(const std::string& adapter) const;

 private:
  std::shared_ptr<Module> copy_self() const override { return std::shared_ptr<Module>(new TokensModule(*this)); }
  TokenRows& rows() const;

  Child<Module> token_adapter_;
  bool tied_ = false;
};

}  // namespace calque::adapter
