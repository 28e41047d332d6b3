#include "scenarios/study/chart.h"

#include <algorithm>
#include <array>
#include <vector>

#include "absl/strings/str_format.h"
#include "scenarios/metrics.h"

namespace detcd::scenario {
namespace {

// Pixels.
constexpr double kLeft = 80;
constexpr double kRight = 20;
constexpr double kTop = 86;
constexpr double kPanel = 190;
constexpr double kPanelGap = 46;
constexpr double kLabels = 60;
constexpr double kGroupWidthMin = 90;
constexpr double kWidthMin = 640;
constexpr int kTicks = 5;
constexpr size_t kLabelLetters = 15;  // in a line
// Told apart also by those who do not see red and green (Okabe and Ito 2008).
constexpr std::array<const char*, 6> kColours = {"#0072b2", "#e69f00", "#009e73", "#cc79a7", "#56b4e9", "#d55e00"};

std::string Escaped(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    switch (c) {
      case '&': escaped += "&amp;"; break;
      case '<': escaped += "&lt;"; break;
      case '>': escaped += "&gt;"; break;
      default: escaped += c;
    }
  }
  return escaped;
}

// `text` in lines that are as long as kLabelLetters where its words are not longer.
std::vector<std::string> Lines(const std::string& text) {
  std::vector<std::string> lines(1);
  size_t at = 0;
  while (at < text.size()) {
    const size_t end = std::min(text.find(' ', at), text.size());
    const std::string word = text.substr(at, end - at);
    if (!lines.back().empty() && lines.back().size() + 1 + word.size() > kLabelLetters) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
    at = end + 1;
  }
  return lines;
}

const MetricRow& RowOf(const std::string& name) { return *std::ranges::find(kMetrics, std::string_view(name), &MetricRow::name); }

// `write outage [ms]`
std::string TitleOf(const MetricRow& row) {
  std::string title(row.name);
  if (title.ends_with("_ms")) title.resize(title.size() - 3);
  std::ranges::replace(title, '_', ' ');
  return row.unit.empty() ? title : absl::StrFormat("%s [%s]", title, std::string(row.unit));
}

struct Bar {
  size_t group = 0;
  size_t series = 0;
  const Cell* cell = nullptr;
};

size_t PlaceOf(std::vector<std::string>& names, const std::string& name) {
  const auto found = std::ranges::find(names, name);
  if (found != names.end()) return static_cast<size_t>(found - names.begin());
  names.push_back(name);
  return names.size() - 1;
}

class Chart {
 public:
  Chart(const Study& study, const StudyReport& report) : study_(study), report_(report) {
    const bool by_case = study.cases_size() > 1 || report.keys().empty();
    for (const Cell& cell : report.cells()) {
      std::string series;
      for (int i = by_case ? 0 : 1; i < cell.values_size(); ++i) {
        series += (series.empty() ? "" : ", ") + report.keys(i) + " " + cell.values(i);
      }
      const std::string group = by_case ? cell.name() : report.keys(0) + " " + cell.values(0);
      const size_t place = PlaceOf(groups_, group);
      bars_.push_back({.group = place, .series = PlaceOf(series_, series), .cell = &cell});
    }
    group_width_ = std::max(kGroupWidthMin, (kWidthMin - kLeft - kRight) / static_cast<double>(groups_.size()));
  }

  std::string Draw() {
    const double width = kLeft + kRight + group_width_ * static_cast<double>(groups_.size());
    const double height = kTop + (kPanel + kPanelGap) * study_.metrics_size() + kLabels;
    absl::StrAppendFormat(&svg_,
                          "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" viewBox=\"0 0 %.0f %.0f\" "
                          "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                          width, height, width, height);
    Text(kLeft, 24, "start", study_.title(), " font-size=\"16\" font-weight=\"bold\"");
    Legend();
    double top = kTop + 26;
    for (const std::string& metric : study_.metrics()) {
      Panel(RowOf(metric), top, width);
      top += kPanel + kPanelGap;
    }
    GroupLabels(top - kPanelGap + 16);
    return svg_ + "</svg>\n";
  }

 private:
  void Text(double x, double y, const char* anchor, const std::string& text, const char* more = "") {
    absl::StrAppendFormat(&svg_, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\"%s>%s</text>\n", x, y, anchor, more, Escaped(text));
  }
  void Line(double x1, double y1, double x2, double y2, const char* colour) {
    absl::StrAppendFormat(&svg_, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" stroke=\"%s\"/>\n", x1, y1, x2, y2, colour);
  }
  void Box(double x, double y, double width, double height, size_t series) {
    absl::StrAppendFormat(&svg_, "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" fill=\"%s\"/>\n", x, y, width, height,
                          kColours[series % kColours.size()]);
  }

  void Legend() {
    Text(kLeft, 44, "start", absl::StrFormat("mean, and least to most, of %d seeds", report_.seeds()), " fill=\"#555\"");
    double x = kLeft;
    for (size_t i = 0; i < series_.size(); ++i) {
      if (series_[i].empty()) continue;
      Box(x, 55, 12, 12, i);
      Text(x + 17, 66, "start", series_[i]);
      x += 40 + 7 * static_cast<double>(series_[i].size());
    }
  }

  void Panel(const MetricRow& row, double top, double width) {
    const auto place = static_cast<int>(row.metric);
    double most = 0;
    for (const Cell& cell : report_.cells()) most = std::max(most, static_cast<double>(cell.numbers(place).most()));
    const double step = TickStep(most, kTicks);
    double limit = step;
    while (limit < most) limit += step;
    const double bottom = top + kPanel;
    const auto y = [&](double value) { return bottom - kPanel * value / limit; };
    Text(kLeft, top - 10, "start", TitleOf(row), " font-weight=\"bold\"");
    for (double tick = 0; tick <= limit + step / 2; tick += step) {
      Line(kLeft, y(tick), width - kRight, y(tick), tick == 0 ? "#000" : "#ddd");
      Text(kLeft - 8, y(tick) + 4, "end", absl::StrFormat("%.0f", tick));
    }
    Line(kLeft, top, kLeft, bottom, "#000");
    const double bar_width = std::min(40.0, group_width_ * 0.7 / static_cast<double>(series_.size()));
    for (const Bar& bar : bars_) {
      if (bar.cell->runs() == 0) continue;
      const Number& number = bar.cell->numbers(place);
      const double mean = static_cast<double>(number.sum()) / static_cast<double>(bar.cell->runs());
      const double shift = (static_cast<double>(bar.series) - static_cast<double>(series_.size()) / 2) * bar_width;
      const double x = kLeft + group_width_ * (static_cast<double>(bar.group) + 0.5) + shift;
      Box(x + 1, y(mean), bar_width - 2, bottom - y(mean), bar.series);
      const double middle = x + bar_width / 2;
      Line(middle, y(static_cast<double>(number.least())), middle, y(static_cast<double>(number.most())), "#333");
    }
  }

  void GroupLabels(double top) {
    for (size_t group = 0; group < groups_.size(); ++group) {
      double y = top;
      for (const std::string& line : Lines(groups_[group])) {
        Text(kLeft + group_width_ * (static_cast<double>(group) + 0.5), y, "middle", line);
        y += 14;
      }
    }
  }

  const Study& study_;
  const StudyReport& report_;
  std::vector<std::string> groups_;
  std::vector<std::string> series_;
  std::vector<Bar> bars_;
  double group_width_ = 0;
  std::string svg_;
};

}  // namespace

double TickStep(double most, int ticks) {
  double step = 1;
  for (double decade = 1; step * ticks < most; decade *= 10) {
    for (const double factor : {1.0, 2.0, 5.0}) {
      step = factor * decade;
      if (step * ticks >= most) break;
    }
  }
  return step;
}

std::string StudyChart(const Study& study, const StudyReport& report) { return Chart(study, report).Draw(); }

}  // namespace detcd::scenario
