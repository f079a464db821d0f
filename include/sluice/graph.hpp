// Planned replacement in a graph, for C++17: classes to derive from over the callbacks of sluice.h, header-only.
// Included by sluice.hpp; docs/graph.md is the manual.
//
//   class MyGraph : public sluice::GraphEditor { ... };           // the eleven callbacks as virtual functions
//   class MyConv : public sluice::ConvPlanner {                   // Conv nodes as sluice::Conv2d calls
//     sluice_status plan(sluice_node node, sluice::NodePlan& plan) override { return plan.conv2d(call_of(node)).code();
//     }
//   };
//   sluice::ReplaceOptions options;
//   options.device("h200").planner(my_conv);
//   std::string report;  // JSON
//   if (auto s = sluice::replace(my_graph, options, &report); !s) return fail(s.message());
//
// A function that throws has failed; nothing thrown passes the C ABI.
#ifndef SLUICE_GRAPH_HPP
#define SLUICE_GRAPH_HPP

#include <exception>
#include <functional>
#include <new>
#include <string>
#include <utility>
#include <vector>

#include "sluice/sluice.hpp"

namespace sluice {

namespace detail {

template <class Body>
sluice_status guarded(Body&& body) noexcept {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return SLUICE_OUT_OF_MEMORY;
  } catch (const std::exception& exception) {
    return sluice_graph_error(SLUICE_INTERNAL, exception.what());
  } catch (...) {
    return sluice_graph_error(SLUICE_INTERNAL, "threw");
  }
}

}  // namespace detail

/// A graph: derive from it. What each function must do is said at sluice_graph_editor.
class GraphEditor {
 public:
  virtual ~GraphEditor() = default;
  virtual sluice_status nodes(std::vector<sluice_node>& out) = 0;
  virtual const char* op(sluice_node node) = 0;
  virtual const char* name(sluice_node) { return nullptr; }
  virtual sluice_status inputs(sluice_node node, std::vector<sluice_value>& out) = 0;
  virtual sluice_status outputs(sluice_node node, std::vector<sluice_value>& out) = 0;
  virtual sluice_status uses(sluice_value value, std::vector<sluice_use>& out) = 0;
  virtual sluice_status insert(sluice_node before, const sluice_new_node& node, sluice_node& inserted) = 0;
  virtual sluice_status rewire(const sluice_use& use, sluice_value from, sluice_value to, std::uint64_t& place) = 0;
  virtual sluice_status erase(sluice_node node) = 0;
  virtual sluice_status undo_insert(sluice_node node) = 0;
  virtual sluice_status undo_rewire(const sluice_use& use, sluice_value from, sluice_value to, std::uint64_t place) = 0;
  virtual sluice_status undo_erase(sluice_node node) = 0;
  virtual sluice_status commit() { return SLUICE_OK; }

  /// Valid while this object lives.
  sluice_graph_editor raw() noexcept {
    sluice_graph_editor out = SLUICE_GRAPH_EDITOR_INIT;
    out.user = this;
    out.nodes = [](void* user, sluice_id_list* list) {
      return fill(list, [&](std::vector<std::uint64_t>& ids) { return self(user).nodes(ids); });
    };
    out.op = [](void* user, sluice_node node) -> const char* {
      const char* text = nullptr;
      const auto ask = [&] { return text = self(user).op(node), SLUICE_OK; };
      return detail::guarded(ask) == SLUICE_OK ? text : nullptr;
    };
    out.name = [](void* user, sluice_node node) -> const char* {
      const char* text = nullptr;
      const auto ask = [&] { return text = self(user).name(node), SLUICE_OK; };
      return detail::guarded(ask) == SLUICE_OK ? text : nullptr;
    };
    out.inputs = [](void* user, sluice_node node, sluice_id_list* list) {
      return fill(list, [&](std::vector<std::uint64_t>& ids) { return self(user).inputs(node, ids); });
    };
    out.outputs = [](void* user, sluice_node node, sluice_id_list* list) {
      return fill(list, [&](std::vector<std::uint64_t>& ids) { return self(user).outputs(node, ids); });
    };
    out.uses = [](void* user, sluice_value value, sluice_use_list* list) {
      return detail::guarded([&] {
        std::vector<sluice_use> uses;
        sluice_status status = self(user).uses(value, uses);
        for (const sluice_use& use : uses) {
          if (status == SLUICE_OK) status = sluice_use_list_add(list, &use);
        }
        return status;
      });
    };
    out.insert = [](void* user, sluice_node before, const sluice_new_node* node, sluice_node* inserted) {
      return detail::guarded([&] { return self(user).insert(before, *node, *inserted); });
    };
    out.rewire = [](void* user, const sluice_use* use, sluice_value from, sluice_value to, std::uint64_t* place) {
      return detail::guarded([&] { return self(user).rewire(*use, from, to, *place); });
    };
    out.erase = [](void* user, sluice_node node) { return detail::guarded([&] { return self(user).erase(node); }); };
    out.undo_insert = [](void* user, sluice_node node) {
      return detail::guarded([&] { return self(user).undo_insert(node); });
    };
    out.undo_rewire = [](void* user, const sluice_use* use, sluice_value from, sluice_value to, std::uint64_t place) {
      return detail::guarded([&] { return self(user).undo_rewire(*use, from, to, place); });
    };
    out.undo_erase = [](void* user, sluice_node node) {
      return detail::guarded([&] { return self(user).undo_erase(node); });
    };
    out.commit = [](void* user) { return detail::guarded([&] { return self(user).commit(); }); };
    return out;
  }

 private:
  static GraphEditor& self(void* user) { return *static_cast<GraphEditor*>(user); }

  template <class Ask>
  static sluice_status fill(sluice_id_list* list, Ask ask) noexcept {
    return detail::guarded([&] {
      std::vector<std::uint64_t> ids;
      sluice_status status = ask(ids);
      for (const std::uint64_t id : ids) {
        if (status == SLUICE_OK) status = sluice_id_list_add(list, id);
      }
      return status;
    });
  }
};

/// What a planner says of a node. Valid during plan().
class NodePlan {
 public:
  explicit NodePlan(sluice_node_plan* raw) noexcept : raw_(raw) {}
  /// The node is this convolution; again for another reading, see sluice_node_plan_conv2d. `call` is a sluice::Conv2d
  /// or anything else with a raw() that gives sluice_conv2d_args.
  template <class Call>
  Status conv2d(const Call& call, const std::vector<sluice_node>& absorbs = {}) noexcept {
    const sluice_conv2d_args args = call.raw();
    return sluice_node_plan_conv2d(raw_, &args, absorbs.data(), absorbs.size());
  }
  Status set(const std::string& signature, bool servable, bool take, const std::string& reason = {}, double speedup = 0,
             const std::vector<sluice_node>& absorbs = {}) noexcept {
    return sluice_node_plan_set(raw_, signature.c_str(), servable ? 1 : 0, take ? 1 : 0, reason.c_str(), speedup,
                                absorbs.data(), absorbs.size());
  }

 private:
  sluice_node_plan* raw_;
};

/// Classifies the nodes of one op; what takes their place is an ai.sluice::Conv2d.
class ConvPlanner {
 public:
  explicit ConvPlanner(std::string op, std::int32_t min_capability = 0) : op_(std::move(op)) {
    raw_.user = this;
    raw_.op = op_.c_str();
    raw_.min_capability = min_capability;
    raw_.plan = [](void* user, sluice_node node, sluice_node_plan* plan) {
      return detail::guarded([&] {
        NodePlan filled(plan);
        return static_cast<ConvPlanner*>(user)->plan(node, filled);
      });
    };
  }
  virtual ~ConvPlanner() = default;
  ConvPlanner(const ConvPlanner&) = delete;
  ConvPlanner& operator=(const ConvPlanner&) = delete;

  virtual sluice_status plan(sluice_node node, NodePlan& plan) = 0;
  const sluice_planner* raw() const noexcept { return &raw_; }

 protected:
  sluice_planner raw_ = SLUICE_PLANNER_INIT;

 private:
  std::string op_;
};

/// The same with a say in what is inserted: `node` starts with the old node's name and inputs.
class Planner : public ConvPlanner {
 public:
  explicit Planner(std::string op, std::int32_t min_capability = 0) : ConvPlanner(std::move(op), min_capability) {
    raw_.lower = [](void* user, sluice_node old, const sluice_node_plan*, sluice_new_node* node) {
      return detail::guarded([&] { return static_cast<Planner*>(static_cast<ConvPlanner*>(user))->lower(old, *node); });
    };
  }
  /// What `node` points to must live until the next call.
  virtual sluice_status lower(sluice_node old, sluice_new_node& node) = 0;
};

/// sluice_replace_options with setters. Planners must outlive the call.
class ReplaceOptions {
 public:
  ReplaceOptions& device(std::string text) { return device_ = std::move(text), *this; }
  ReplaceOptions& context(const sluice_context* context) noexcept { return raw_.context = context, *this; }
  ReplaceOptions& routing_table(std::string path) { return routing_table_ = std::move(path), *this; }
  ReplaceOptions& force_take(bool force = true) noexcept { return raw_.force_take = force ? 1 : 0, *this; }
  ReplaceOptions& dry_run(bool dry = true) noexcept { return raw_.dry_run = dry ? 1 : 0, *this; }
  ReplaceOptions& planner(const ConvPlanner& planner) { return planners_.push_back(planner.raw()), *this; }
  /// Whether your own lowering can compile the node. Without it: always.
  ReplaceOptions& regular(std::function<bool(sluice_node, const char* signature)> can) {
    return regular_ = std::move(can), *this;
  }
  ReplaceOptions& log(sluice_log_callback callback, void* user) noexcept {
    return raw_.log = callback, raw_.log_user = user, *this;
  }

  /// Valid while this object lives unchanged.
  sluice_replace_options raw() const noexcept {
    sluice_replace_options out = raw_;
    if (!device_.empty()) out.device = device_.c_str();
    if (!routing_table_.empty()) out.routing_table = routing_table_.c_str();
    out.planners = planners_.data();
    out.planner_count = planners_.size();
    if (regular_) {
      out.regular_user = const_cast<ReplaceOptions*>(this);
      out.regular = [](void* user, sluice_node node, const char* signature) -> std::int32_t {
        std::int32_t answer = -1;
        const auto ask = [&] {
          answer = static_cast<const ReplaceOptions*>(user)->regular_(node, signature) ? 1 : 0;
          return SLUICE_OK;
        };
        return detail::guarded(ask) == SLUICE_OK ? answer : -1;
      };
    }
    return out;
  }

 private:
  sluice_replace_options raw_ = SLUICE_REPLACE_OPTIONS_INIT;
  std::string device_, routing_table_;
  std::vector<const sluice_planner*> planners_;
  std::function<bool(sluice_node, const char*)> regular_;
};

/// sluice_graph_replace(). `report` may be null; it is JSON, also after most errors, and "" where there is none.
inline Status replace(GraphEditor& editor, const ReplaceOptions& options, std::string* report = nullptr) {
  const sluice_graph_editor raw_editor = editor.raw();
  const sluice_replace_options raw_options = options.raw();
  struct Text {
    char* text = nullptr;
    ~Text() { sluice_string_free(text); }
  } json;
  const Status status = sluice_graph_replace(&raw_editor, &raw_options, report == nullptr ? nullptr : &json.text);
  if (report != nullptr) *report = json.text == nullptr ? "" : json.text;
  return status;
}

}  // namespace sluice

#endif
