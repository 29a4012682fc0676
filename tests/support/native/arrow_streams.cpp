// Device streams that Arrow's C++ library imports and exports.
#include <arrow/api.h>
#include <arrow/c/bridge.h>

#include <string>

#define EXPORTED extern "C" __attribute__((visibility("default")))

static std::string said;

// Import a stream with Arrow C++, which consumes the stream. Return the resulting array as text, or the error's text.
EXPORTED const char *read_stream(ArrowDeviceArrayStream *stream) {
    auto read = arrow::ImportDeviceChunkedArray(stream, arrow::DefaultDeviceMemoryMapper);
    said = read.status().ToString();
    if (read.ok()) {
        auto valid = (*read)->ValidateFull();
        said = valid.ok() ? (*read)->ToString() : valid.ToString();
    }
    return said.c_str();
}

// Export a stream of the chunks [1, 2, 3] and [4, null]. Return 0 if it succeeds, else 1.
EXPORTED int write_stream(ArrowDeviceArrayStream *stream) {
    arrow::Int64Builder builder;
    arrow::ArrayVector chunks(2);
    bool ok = builder.AppendValues({1, 2, 3}).ok() && builder.Finish(&chunks[0]).ok() && builder.Append(4).ok() &&
              builder.AppendNull().ok() && builder.Finish(&chunks[1]).ok();
    auto whole = std::make_shared<arrow::ChunkedArray>(chunks);
    return ok && arrow::ExportDeviceChunkedArray(whole, arrow::DeviceAllocationType::kCPU, stream).ok() ? 0 : 1;
}
