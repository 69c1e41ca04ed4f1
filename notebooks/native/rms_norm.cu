// RMS norm for a GPU: each block of 256 threads does one row. Chapter 20.
//
// nvcc -shared -Xcompiler -fPIC -std=c++17 -I <minijax.ffi.include_dir()>
//      rms_norm.cu -o rms_norm.so

#include <algorithm>
#include <cstdint>

#include <cuda_runtime.h>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

constexpr int kThreads = 256;

// Adds one number of each thread; every thread gets the sum.
__device__ float SumOfBlock(float mine) {
  __shared__ float parts[kThreads];
  parts[threadIdx.x] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) parts[threadIdx.x] += parts[threadIdx.x + half];
    __syncthreads();
  }
  const float sum = parts[0];
  __syncthreads();  // before anybody writes the parts of the next sum
  return sum;
}

__global__ void Forward(const float* x, float* y, int64_t n, float eps) {
  x += blockIdx.x * n;
  y += blockIdx.x * n;
  float squares = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) squares += x[i] * x[i];
  const float scale = rsqrtf(SumOfBlock(squares) / n + eps);
  for (int64_t i = threadIdx.x; i < n; i += kThreads) y[i] = x[i] * scale;
}

__global__ void Backward(const float* x, const float* dy, float* dx, int64_t n,
                         float eps) {
  x += blockIdx.x * n;
  dy += blockIdx.x * n;
  dx += blockIdx.x * n;
  float squares = 0, products = 0;
  for (int64_t i = threadIdx.x; i < n; i += kThreads) {
    squares += x[i] * x[i];
    products += x[i] * dy[i];
  }
  const float scale = rsqrtf(SumOfBlock(squares) / n + eps);
  const float pull = SumOfBlock(products) / n * scale * scale;
  for (int64_t i = threadIdx.x; i < n; i += kThreads)
    dx[i] = scale * (dy[i] - x[i] * pull);
}

using Shape = ffi::Span<const int64_t>;

static bool Same(Shape a, Shape b) {
  return a.size() > 0 && std::equal(a.begin(), a.end(), b.begin(), b.end());
}

static ffi::Error Launched() {
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return ffi::Error::Success();
  return ffi::Error::Internal(cudaGetErrorString(error));
}

static ffi::Error NormImpl(cudaStream_t stream, double eps, ffi::Buffer<ffi::F32> x,
                           ffi::ResultBuffer<ffi::F32> y) {
  const auto shape = x.dimensions();
  if (!Same(shape, y->dimensions()))
    return ffi::Error::InvalidArgument("RmsNorm: the result must have x's shape");
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t n = shape.back(), rows = x.element_count() / n;
  Forward<<<rows, kThreads, 0, stream>>>(x.typed_data(), y->typed_data(), n, eps);
  return Launched();
}

static ffi::Error BackImpl(cudaStream_t stream, double eps, ffi::Buffer<ffi::F32> x,
                           ffi::Buffer<ffi::F32> dy, ffi::ResultBuffer<ffi::F32> dx) {
  const auto shape = x.dimensions();
  if (!Same(shape, dy.dimensions()) || !Same(shape, dx->dimensions()))
    return ffi::Error::InvalidArgument("RmsNormBack: three arrays of one shape");
  if (x.element_count() == 0) return ffi::Error::Success();
  const int64_t n = shape.back(), rows = x.element_count() / n;
  Backward<<<rows, kThreads, 0, stream>>>(x.typed_data(), dy.typed_data(),
                                          dx->typed_data(), n, eps);
  return Launched();
}

XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNorm, NormImpl,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Attr<double>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
XLA_FFI_DEFINE_HANDLER_SYMBOL(RmsNormBack, BackImpl,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::PlatformStream<cudaStream_t>>()
                                  .Attr<double>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());
