#include "calque/graph/draw.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <nlohmann/json.hpp>

#include "calque/graph/text.h"
#include "calque/sym/shape_env.h"
#include "value_print.h"

namespace calque {

// ---- the table --------------------------------------------------------------------------------------------------------

namespace {

std::string kwargs_text(const Kwargs& kwargs) {
  std::string s;
  for (const auto& [key, v] : kwargs) s += (s.empty() ? "'" : ", '") + key + "': " + ValuePrinter()(v);
  return "{" + s + "}";
}

// In characters, not bytes.
size_t width(std::string_view s) {
  return static_cast<size_t>(
      std::count_if(s.begin(), s.end(), [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80; }));
}

}  // namespace

std::string tabular(const Graph& graph) {
  using Row = std::array<std::string, 5>;
  std::vector<Row> rows = {{"opcode", "name", "target", "args", "kwargs"}};
  for (const Node* n : graph.nodes())
    rows.push_back({std::string(name(n->kind())), n->name(), n->target().str(), ValuePrinter().tuple(n->args()),
                    kwargs_text(n->kwargs())});
  std::array<size_t, 5> widths{};
  for (const Row& row : rows)
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]) + (&row == &rows[0] ? 2 : 0));
  Row line;
  for (size_t c = 0; c < line.size(); ++c) line[c] = std::string(widths[c], '-');
  rows.insert(rows.begin() + 1, line);
  std::string out;
  for (const Row& row : rows) {
    std::string text;
    for (size_t c = 0; c < row.size(); ++c) text += (c ? "  " : "") + row[c] + std::string(widths[c] - width(row[c]), ' ');
    text.resize(text.find_last_not_of(' ') + 1);
    out += (out.empty() ? "" : "\n") + text;
  }
  return out;
}

// ---- DOT --------------------------------------------------------------------------------------------------------------

namespace {

bool is_shown(const Node& n, const DrawOptions& options) {
  if (n.kind() == NodeKind::get_attr && !options.include_get_attr) return false;
  return !(options.skip_unused_inputs && n.kind() == NodeKind::placeholder && n.users().empty());
}

std::string_view color_of(const Node& n) {
  switch (n.kind()) {
    case NodeKind::placeholder: return "#dcecfb";
    case NodeKind::get_attr: return "#e4e4e4";
    case NodeKind::call_module: return "#fff6c8";
    case NodeKind::call_method: return "#e6f5dc";
    case NodeKind::call_function: return "#ffffff";
    case NodeKind::output: return "#cfe8ea";
  }
  return "#ffffff";
}

std::string dot_quoted(std::string_view s) {
  std::string out = "\"";
  for (const char c : s) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

}  // namespace

std::string to_dot(const Graph& graph, const DrawOptions& options) {
  std::string s = "digraph " + dot_quoted(options.name) +
                  " {\n  rankdir=TB;\n  node [shape=box, style=\"filled,rounded\", fontname=\"Helvetica\", fontsize=10];\n";
  for (const Node* n : graph.nodes()) {
    if (!is_shown(*n, options)) continue;
    std::string label = n->name() + "\n" + (n->kind() == NodeKind::call_function ? "" : std::string(name(n->kind())) + " ") +
                        n->target().str();
    if (const std::string val = val_text(n->meta.val); !val.empty()) label += "\n" + val;
    s += "  " + dot_quoted(n->name()) + " [label=" + dot_quoted(label) + ", fillcolor=\"" + std::string(color_of(*n)) +
         "\"];\n";
  }
  for (const Node* n : graph.nodes())
    for (size_t i = 0; i < n->num_input_nodes(); ++i)
      if (is_shown(*n->input_node(i), options) && is_shown(*n, options))
        s += "  " + dot_quoted(n->input_node(i)->name()) + " -> " + dot_quoted(n->name()) + ";\n";
  return s + "}\n";
}

// ---- JSON -------------------------------------------------------------------------------------------------------------

namespace {

using json = nlohmann::ordered_json;

json to_json_value(const Value& v) {
  switch (v.kind()) {
    case Value::Kind::none: return nullptr;
    case Value::Kind::node: return {{"node", v.to_node()->name()}};
    case Value::Kind::boolean:
      if (!v.to_sym_bool().is_symbolic()) return v.to_bool();
      return {{"sym", v.str()}};
    case Value::Kind::integer:
      if (!v.to_sym_int().is_symbolic()) return v.to_int();
      return {{"sym", v.str()}};
    case Value::Kind::floating:
      if (v.to_sym_float().is_symbolic()) return {{"sym", v.str()}};
      if (const double d = v.to_float(); d - d == 0) return d;
      return {{"float", v.str()}};  // JSON has no inf and nan
    case Value::Kind::string: return v.to_string();
    case Value::Kind::list: {
      json out = json::array();
      for (const Value& item : v.to_items()) out.push_back(to_json_value(item));
      return out;
    }
    case Value::Kind::tuple: {
      json out = json::array();
      for (const Value& item : v.to_items()) out.push_back(to_json_value(item));
      return {{"tuple", out}};
    }
    case Value::Kind::dict: {
      json out = json::array();
      for (const auto& [key, item] : v.to_dict().items)
        out.push_back(json::array({to_json_value(key), to_json_value(item)}));
      return {{"dict", out}};
    }
    case Value::Kind::structure: {
      const StructValue& s = v.to_struct();
      json items = json::array();
      for (const Value& item : s.items) items.push_back(to_json_value(item));
      return {{"struct", s.type}, {"context", s.context}, {"fields", s.fields}, {"items", items}};
    }
    case Value::Kind::slice:
      return {{"slice", json::array({to_json_value(v.to_slice().start), to_json_value(v.to_slice().stop),
                                     to_json_value(v.to_slice().step)})}};
    case Value::Kind::tensor: return {{"tensor", val_text(v)}};
    default: return {{std::string(Value::kind_name(v.kind())), python_str(v)}};
  }
}

json node_json(const Node& n) {
  json out = {{"name", n.name()}, {"op", name(n.kind())}, {"target", n.target().str()}};
  json args = json::array();
  for (const Value& a : n.args()) args.push_back(to_json_value(a));
  json kwargs = json::object();
  for (const auto& [key, v] : n.kwargs()) kwargs[key] = to_json_value(v);
  json users = json::array();
  for (const Node* u : n.users()) users.push_back(u->name());
  out["args"] = std::move(args);
  out["kwargs"] = std::move(kwargs);
  out["users"] = std::move(users);
  if (const std::string val = val_text(n.meta.val); !val.empty()) out["val"] = val;
  if (!n.type().empty()) out["type"] = n.type();
  if (n.meta.nn_module_stack) {
    json stack = json::array();
    for (const ModuleStackEntry& e : *n.meta.nn_module_stack) stack.push_back({{"path", e.path}, {"type", e.type}});
    out["nn_module_stack"] = std::move(stack);
  }
  if (n.meta.stack_trace) out["stack_trace"] = *n.meta.stack_trace;
  if (n.meta.location.line() != 0)
    out["source"] = std::string(n.meta.location.file_name()) + ":" + std::to_string(n.meta.location.line());
  return out;
}

json graph_json(const Graph& graph) {
  json nodes = json::array();
  for (const Node* n : graph.nodes()) nodes.push_back(node_json(*n));
  json out = {{"nodes", std::move(nodes)}};
  if (!graph.shape_env()) return out;
  json symbols = json::array();
  for (const Symbol& s : graph.shape_env()->symbols()) {
    json entry = {{"name", s.name}, {"lower", s.range.lower}, {"upper", s.range.upper}};
    if (s.hint) entry["example"] = *s.hint;
    if (!s.origin.empty()) entry["origin"] = s.origin;
    symbols.push_back(std::move(entry));
  }
  out["symbols"] = std::move(symbols);
  return out;
}

constexpr auto replace_bad_utf8 = json::error_handler_t::replace;

}  // namespace

std::string to_json(const Graph& graph, int indent) { return graph_json(graph).dump(indent, ' ', false, replace_bad_utf8); }

// ---- HTML -------------------------------------------------------------------------------------------------------------

namespace {

// Where each node stands: rows by distance from the inputs, in a row by the mean place of the inputs.
struct Layout2 {
  struct Box {
    const Node* node;
    size_t row;
    double x;
    double width;
  };
  std::vector<Box> boxes;         // in the graph's order
  std::vector<size_t> box_of_id;  // by node id
};

constexpr double character = 7.2;
constexpr double row_height = 72;
constexpr double gap = 24;

Layout2 laid_out(const Graph& graph, const DrawOptions& options) {
  Layout2 out;
  out.box_of_id.assign(graph.id_bound(), SIZE_MAX);
  std::vector<std::vector<size_t>> rows;
  for (const Node* n : graph.nodes()) {
    if (!is_shown(*n, options)) continue;
    size_t row = 0;
    for (size_t i = 0; i < n->num_input_nodes(); ++i)
      if (const size_t b = out.box_of_id[n->input_node(i)->id()]; b != SIZE_MAX) row = std::max(row, out.boxes[b].row + 1);
    const size_t longest = std::max({width(n->name()), width(n->target().str()), width(val_text(n->meta.val))});
    out.box_of_id[n->id()] = out.boxes.size();
    if (rows.size() <= row) rows.resize(row + 1);
    rows[row].push_back(out.boxes.size());
    out.boxes.push_back({n, row, 0, static_cast<double>(std::min<size_t>(longest, 60)) * character + 20});
  }
  for (std::vector<size_t>& row : rows) {
    std::vector<std::pair<double, size_t>> wanted;
    for (const size_t b : row) {
      double sum = 0;
      double count = 0;
      for (size_t i = 0; i < out.boxes[b].node->num_input_nodes(); ++i)
        if (const size_t from = out.box_of_id[out.boxes[b].node->input_node(i)->id()]; from != SIZE_MAX) {
          sum += out.boxes[from].x + out.boxes[from].width / 2;
          ++count;
        }
      wanted.emplace_back(count > 0 ? sum / count : static_cast<double>(wanted.size()) * 160, b);
    }
    std::stable_sort(wanted.begin(), wanted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    double next = wanted.empty() ? 0 : wanted[0].first - out.boxes[wanted[0].second].width / 2;
    for (const auto& [center, b] : wanted) {
      out.boxes[b].x = std::max(next, center - out.boxes[b].width / 2);
      next = out.boxes[b].x + out.boxes[b].width + gap;
    }
  }
  return out;
}

// Inside a script element nothing may look like the end of it.
std::string for_script(std::string text) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text) {
    if (c == '<')
      out += "\\u003c";
    else
      out += c;
  }
  return out;
}

std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '&')
      out += "&amp;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  }
  return out;
}

constexpr std::string_view page_style = R"(
html,body{margin:0;height:100%;overflow:hidden;font:13px Helvetica,Arial,sans-serif;background:#fafafa;color:#222}
#bar{position:fixed;top:0;left:0;right:0;height:40px;background:#fff;border-bottom:1px solid #ccc;display:flex;align-items:center;gap:12px;padding:0 12px;z-index:2}
#search{width:260px;padding:4px 8px;font:inherit}
#count{color:#666}
#details{position:fixed;top:41px;right:0;bottom:0;width:380px;background:#fff;border-left:1px solid #ccc;overflow:auto;padding:12px;box-sizing:border-box;display:none;z-index:2}
#details pre{white-space:pre-wrap;word-break:break-all;font:12px monospace}
#view{position:absolute;top:41px;left:0;width:100%;height:calc(100% - 41px);cursor:grab}
#view.moving{cursor:grabbing}
.node rect{stroke:#888;rx:5}
.node text{font-size:12px;pointer-events:none}
.node .target{fill:#555;font-size:11px}
.node .val{fill:#06c;font-size:11px}
.node{cursor:pointer}
.node.found rect{stroke:#e60;stroke-width:3}
.node.chosen rect{stroke:#06c;stroke-width:3}
.node.near rect{stroke:#06c;stroke-width:2}
.edge{fill:none;stroke:#aaa}
.edge.near{stroke:#06c;stroke-width:2}
)";

constexpr std::string_view page_script = R"(
const SVG='http://www.w3.org/2000/svg',view=document.getElementById('view'),world=document.getElementById('world');
const elements=[],edges=[],index=new Map();
let scale=1,dx=0,dy=0,chosen=-1,found=[],at=-1;
function el(name,attributes,parent){const e=document.createElementNS(SVG,name);for(const k in attributes)e.setAttribute(k,attributes[k]);parent.appendChild(e);return e}
function line(g,text,y,w,cls){if(!text)return;const t=el('text',{x:10,y:y,class:cls},g);const most=Math.floor((w-20)/6.4);t.textContent=text.length>most?text.slice(0,most-1)+'\u2026':text}
graph.nodes.forEach((n,i)=>index.set(n.name,i));
boxes.forEach((b,i)=>{for(const from of b.inputs){const f=boxes[from];const x1=f.x+f.w/2,y1=f.y+f.h,x2=b.x+b.w/2,y2=b.y,m=(y1+y2)/2;
 edges.push({from:from,to:i,e:el('path',{class:'edge','marker-end':'url(#arrow)',d:`M${x1},${y1}C${x1},${m} ${x2},${m} ${x2},${y2}`},world)})}});
boxes.forEach((b,i)=>{const n=graph.nodes[b.node],g=el('g',{class:'node',transform:`translate(${b.x},${b.y})`},world);
 el('rect',{width:b.w,height:b.h,fill:b.color},g);line(g,n.name,15,b.w,'name');line(g,n.target,29,b.w,'target');line(g,n.val,43,b.w,'val');
 g.addEventListener('click',e=>{e.stopPropagation();choose(i)});elements.push(g)});
function show(){world.setAttribute('transform',`translate(${dx},${dy}) scale(${scale})`)}
function bounds(){let l=1/0,t=1/0,r=-1/0,b=-1/0;for(const x of boxes){l=Math.min(l,x.x);t=Math.min(t,x.y);r=Math.max(r,x.x+x.w);b=Math.max(b,x.y+x.h)}return[l,t,r,b]}
function fit(){if(!boxes.length)return;const[l,t,r,b]=bounds(),w=view.clientWidth,h=view.clientHeight;scale=Math.min(1.5,Math.max(0.02,Math.min(w/(r-l+40),h/(b-t+40))));dx=w/2-scale*(l+r)/2;dy=Math.max(20-scale*t,h/2-scale*(t+b)/2);show()}
function center(i){const b=boxes[i];if(scale<0.5)scale=1;dx=view.clientWidth/2-scale*(b.x+b.w/2);dy=view.clientHeight/2-scale*(b.y+b.h/2);show()}
function choose(i){elements.forEach(e=>e.classList.remove('chosen','near'));edges.forEach(e=>e.e.classList.remove('near'));chosen=i;const d=document.getElementById('details');
 if(i<0){d.style.display='none';return}
 elements[i].classList.add('chosen');for(const e of edges)if(e.from===i||e.to===i){e.e.classList.add('near');elements[e.from===i?e.to:e.from].classList.add('near')}
 d.style.display='block';document.getElementById('what').textContent=graph.nodes[boxes[i].node].name;document.getElementById('json').textContent=JSON.stringify(graph.nodes[boxes[i].node],null,1)}
function search(text){elements.forEach(e=>e.classList.remove('found'));found=[];at=-1;const q=text.trim().toLowerCase();
 if(q)boxes.forEach((b,i)=>{const n=graph.nodes[b.node];if((n.name+' '+n.target+' '+(n.val||'')+' '+n.op).toLowerCase().includes(q)){found.push(i);elements[i].classList.add('found')}});
 document.getElementById('count').textContent=q?`${found.length} found`:`${boxes.length} nodes`;if(found.length)next(1)}
function next(step){if(!found.length)return;at=(at+step+found.length)%found.length;center(found[at])}
const input=document.getElementById('search');
input.addEventListener('input',()=>search(input.value));
input.addEventListener('keydown',e=>{if(e.key==='Enter')next(e.shiftKey?-1:1)});
document.addEventListener('keydown',e=>{if(e.key==='/'&&document.activeElement!==input){e.preventDefault();input.focus()}if(e.key==='Escape'){choose(-1);input.blur()}});
view.addEventListener('wheel',e=>{e.preventDefault();const k=Math.exp(-e.deltaY*0.0015),s=Math.min(8,Math.max(0.02,scale*k)),r=view.getBoundingClientRect(),x=e.clientX-r.left,y=e.clientY-r.top;dx=x-(x-dx)*s/scale;dy=y-(y-dy)*s/scale;scale=s;show()},{passive:false});
let drag=null;
view.addEventListener('pointerdown',e=>{drag={x:e.clientX,y:e.clientY,dx:dx,dy:dy,moved:false}});
window.addEventListener('pointermove',e=>{if(!drag)return;if(Math.abs(e.clientX-drag.x)+Math.abs(e.clientY-drag.y)>3){drag.moved=true;view.classList.add('moving')}dx=drag.dx+e.clientX-drag.x;dy=drag.dy+e.clientY-drag.y;show()});
window.addEventListener('pointerup',()=>{view.classList.remove('moving');drag=null});
view.addEventListener('click',()=>choose(-1));
document.getElementById('fit').addEventListener('click',fit);
search('');fit();
)";

}  // namespace

std::string to_html(const Graph& graph, const DrawOptions& options) {
  const Layout2 layout = laid_out(graph, options);
  std::vector<size_t> node_index(graph.id_bound());
  size_t next = 0;
  for (const Node* n : graph.nodes()) node_index[n->id()] = next++;
  json boxes = json::array();
  for (const Layout2::Box& b : layout.boxes) {
    json inputs = json::array();
    for (size_t i = 0; i < b.node->num_input_nodes(); ++i)
      if (const size_t from = layout.box_of_id[b.node->input_node(i)->id()]; from != SIZE_MAX) inputs.push_back(from);
    boxes.push_back({{"node", node_index[b.node->id()]},
                     {"x", b.x},
                     {"y", static_cast<double>(b.row) * row_height},
                     {"w", b.width},
                     {"h", 50},
                     {"color", color_of(*b.node)},
                     {"inputs", inputs}});
  }
  const std::string title = html_escaped(options.name);
  std::string s = "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>" + title + "</title><style>";
  s += page_style;
  s += "</style></head><body>\n<div id=\"bar\"><b>" + title +
       "</b><input id=\"search\" type=\"search\" placeholder=\"search names, targets, shapes (/)\"><span "
       "id=\"count\"></span><button id=\"fit\">fit</button></div>\n"
       "<svg id=\"view\"><defs><marker id=\"arrow\" viewBox=\"0 0 8 8\" refX=\"8\" refY=\"4\" markerWidth=\"7\" "
       "markerHeight=\"7\" orient=\"auto\"><path d=\"M0,0L8,4L0,8z\" "
       "fill=\"#999\"/></marker></defs><g id=\"world\"></g></svg>\n<div id=\"details\"><b id=\"what\"></b><pre "
       "id=\"json\"></pre></div>\n<script>\nconst graph=";
  s += for_script(graph_json(graph).dump(-1, ' ', false, replace_bad_utf8)) + ";\nconst boxes=" + for_script(boxes.dump()) +
       ";";
  s += page_script;
  return s + "</script></body></html>\n";
}

}  // namespace calque
