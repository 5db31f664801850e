#include "torch/bridge.h"

#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/InferenceMode.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/DynamicTypes.h>
#include <torch/csrc/Layout.h>
#include <torch/csrc/MemoryFormat.h>
#include <torch/csrc/Size.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/csrc/utils/tensor_numpy.h>

#include "torch/types.h"

namespace cdynamo {

static_assert(int(DType::UInt8) == int(at::kByte) && int(DType::Int8) == int(at::kChar) && int(DType::Int16) == int(at::kShort));
static_assert(int(DType::Int32) == int(at::kInt) && int(DType::Int64) == int(at::kLong) && int(DType::Float16) == int(at::kHalf));
static_assert(int(DType::Float32) == int(at::kFloat) && int(DType::Float64) == int(at::kDouble) && int(DType::Bool) == int(at::kBool));
static_assert(int(DType::ComplexHalf) == int(at::kComplexHalf) && int(DType::Complex64) == int(at::kComplexFloat));
static_assert(int(DType::Complex128) == int(at::kComplexDouble) && int(DType::BFloat16) == int(at::kBFloat16));

namespace {

bool knownDType(at::ScalarType type) { return int(type) >= 0 && (int(type) <= int(at::kBool) || type == at::kBFloat16); }

// Turns a C++ exception of PyTorch into a Python error and throws PythonError.
template <typename F>
auto translated(F&& body) {
  try {
    return body();
  } catch (const PythonError&) {
    throw;
  } catch (const std::exception& error) {
    PyErr_SetString(PyExc_RuntimeError, error.what());
    throw PythonError{};
  }
}

at::IntArrayRef asArray(const Dims& dims) { return {dims.data(), dims.size()}; }

}  // namespace

bool isTensor(PyObject* object) {
  return THPVariableClass != nullptr && PyType_IsSubtype(Py_TYPE(object), reinterpret_cast<PyTypeObject*>(THPVariableClass));
}

const char* describeOddity(TensorOddity oddity) {
  switch (oddity) {
    case TensorOddity::None: return "a plain tensor";
    case TensorOddity::NotATensor: return "not a tensor";
    case TensorOddity::Undefined: return "an undefined tensor";
    case TensorOddity::Layout: return "a tensor whose layout is not strided";
    case TensorOddity::Nested: return "a nested tensor";
    case TensorOddity::Quantized: return "a quantized tensor";
    case TensorOddity::DType: return "a tensor of an uncommon dtype";
    case TensorOddity::SymbolicSizes: return "a tensor with symbolic sizes";
    case TensorOddity::DispatchSubclass: return "a tensor with __torch_dispatch__";
    case TensorOddity::FunctorchWrapper: return "a tensor wrapped by torch.func";
    case TensorOddity::Functional: return "a functionalized tensor";
    case TensorOddity::ZeroTensor: return "a zero tensor of forward-mode autograd";
    case TensorOddity::ForbiddenView: return "a view whose base was written to in a way that autograd forbids";
  }
  return "an unusual tensor";
}

bool readTensorMeta(PyObject* object, TensorMeta& out, TensorOddity* oddity) {
  auto refuse = [&](TensorOddity why) {
    if (oddity != nullptr) *oddity = why;
    return false;
  };
  if (!isTensor(object)) return refuse(TensorOddity::NotATensor);
  const at::Tensor& tensor = THPVariable_Unpack(object);
  if (!tensor.defined()) return refuse(TensorOddity::Undefined);
  const c10::TensorImpl* impl = tensor.unsafeGetTensorImpl();
  c10::DispatchKeySet keys = impl->key_set();
  if (keys.has(c10::DispatchKey::Python)) return refuse(TensorOddity::DispatchSubclass);
  if (keys.has_any(c10::DispatchKeySet({c10::DispatchKey::FuncTorchBatched, c10::DispatchKey::FuncTorchGradWrapper})))
    return refuse(TensorOddity::FunctorchWrapper);
  if (keys.has(c10::DispatchKey::Functionalize)) return refuse(TensorOddity::Functional);
  if (impl->is_nested()) return refuse(TensorOddity::Nested);
  if (impl->layout() != c10::kStrided) return refuse(TensorOddity::Layout);
  if (impl->is_quantized()) return refuse(TensorOddity::Quantized);
  if (impl->has_symbolic_sizes_strides()) return refuse(TensorOddity::SymbolicSizes);
  if (tensor._is_zerotensor()) return refuse(TensorOddity::ZeroTensor);
  at::ScalarType type = tensor.scalar_type();
  if (!knownDType(type)) return refuse(TensorOddity::DType);

  c10::Device device = impl->device();
  at::IntArrayRef sizes = impl->sizes(), strides = impl->strides();
  out.dtype = static_cast<DType>(type);
  out.device = {static_cast<int8_t>(device.type()), static_cast<int8_t>(device.index())};
  out.layout = static_cast<int8_t>(c10::kStrided);
  // Asked first: for a view whose base was written to, this makes the function that the other two know.
  bool computed = false;
  try {
    computed = static_cast<bool>(tensor.grad_fn());
  } catch (const c10::Error&) {
    return refuse(TensorOddity::ForbiddenView);
  }
  out.requiresGrad = tensor.requires_grad();
  out.isLeaf = !computed;
  out.isInference = tensor.is_inference();
  out.isConj = tensor.is_conj();
  out.isNeg = tensor.is_neg();
  out.sizes.assign(sizes.data(), static_cast<uint32_t>(sizes.size()));
  out.strides.assign(strides.data(), static_cast<uint32_t>(strides.size()));
  out.storageOffset = impl->storage_offset();
  if (oddity != nullptr) *oddity = TensorOddity::None;
  return true;
}

PyObject* makeMetaTensor(const TensorMeta& meta) {
  return translated([&] {
    at::NoGradGuard noGrad;
    int64_t extent = 1;
    for (uint32_t i = 0; i < meta.sizes.size(); i++) {
      if (meta.sizes[i] == 0) {
        extent = 0;
        break;
      }
      extent += (meta.sizes[i] - 1) * meta.strides[i];
    }
    auto options = at::TensorOptions().dtype(static_cast<at::ScalarType>(meta.dtype)).device(at::kMeta);
    at::Tensor tensor;
    if (meta.storageOffset == 0) {
      tensor = at::empty_strided(asArray(meta.sizes), asArray(meta.strides), options);
    } else {
      tensor = at::empty({meta.storageOffset + extent}, options);
      tensor = tensor.as_strided(asArray(meta.sizes), asArray(meta.strides), meta.storageOffset).detach();
    }
    return checked(THPVariable_Wrap(tensor)).release();
  });
}

PyObject* makeNumberTensor(PyObject* number) {
  // As a tensor that the user made outside: plain in every mode but inference, and whatever the default device is.
  try {
    c10::InferenceMode inference(false);
    at::Tensor tensor;
    if (PyFloat_CheckExact(number)) {
      tensor = at::detail::empty_cpu({}, at::kDouble);
      *tensor.mutable_data_ptr<double>() = PyFloat_AS_DOUBLE(number);
    } else {
      int overflow = 0;
      long long value = PyLong_CheckExact(number) ? PyLong_AsLongLongAndOverflow(number, &overflow) : (overflow = 1);
      if (overflow) return nullptr;
      tensor = at::detail::empty_cpu({}, at::kLong);
      *tensor.mutable_data_ptr<int64_t>() = value;
    }
    PyObject* wrapped = THPVariable_Wrap(std::move(tensor));
    if (wrapped == nullptr) PyErr_Clear();
    return wrapped;
  } catch (const std::exception&) {
    return nullptr;
  }
}

PyObject* makeArrayTensor(PyObject* array) {
  Py_buffer view;
  if (Py_TYPE(array) != ndarrayType()) return nullptr;
  if (PyObject_GetBuffer(array, &view, PyBUF_STRIDED) < 0) return PyErr_Clear(), nullptr;
  PyBuffer_Release(&view);
  try {
    c10::InferenceMode inference(false);
    PyObject* wrapped = THPVariable_Wrap(torch::utils::tensor_from_numpy(array, false));
    if (wrapped == nullptr) PyErr_Clear();
    return wrapped;
  } catch (const std::exception&) {
    PyErr_Clear();
    return nullptr;
  }
}

bool dtypeFrom(PyObject* object, DType& out) {
  if (THPDtype_Check(object)) {
    at::ScalarType type = reinterpret_cast<THPDtype*>(object)->scalar_type;
    if (!knownDType(type)) return false;
    out = static_cast<DType>(type);
    return true;
  }
  if (object == reinterpret_cast<PyObject*>(&PyFloat_Type)) return out = DType::Float64, true;
  if (object == reinterpret_cast<PyObject*>(&PyLong_Type)) return out = DType::Int64, true;
  if (object == reinterpret_cast<PyObject*>(&PyBool_Type)) return out = DType::Bool, true;
  return false;
}

bool deviceFrom(PyObject* object, DeviceTag& out) {
  if (THPDevice_Check(object)) {
    at::Device device = reinterpret_cast<THPDevice*>(object)->device;
    out = {static_cast<int8_t>(device.type()), static_cast<int8_t>(device.index())};
    return true;
  }
  if (!PyUnicode_CheckExact(object)) return false;
  const char* text = PyUnicode_AsUTF8(object);
  if (text == nullptr) {
    PyErr_Clear();
    return false;
  }
  try {
    at::Device device{std::string(text)};
    out = {static_cast<int8_t>(device.type()), static_cast<int8_t>(device.index())};
    return true;
  } catch (const std::exception&) {
    return false;
  }
}

bool memoryFormatFrom(PyObject* object, int8_t& out) {
  if (!THPMemoryFormat_Check(object)) return false;
  out = static_cast<int8_t>(reinterpret_cast<THPMemoryFormat*>(object)->memory_format);
  return true;
}

bool isStridedLayout(PyObject* object) { return THPLayout_Check(object) && reinterpret_cast<THPLayout*>(object)->layout == c10::kStrided; }

PyObject* dtypeObject(DType dtype) {
  return translated([&] { return ObjectRef::share(torch::getTHPDtype(static_cast<at::ScalarType>(dtype))).release(); });
}

PyObject* deviceObject(DeviceTag device) {
  return translated([&] { return checked(THPDevice_New(at::Device(static_cast<at::DeviceType>(device.type), device.index))).release(); });
}

PyObject* layoutObject(int8_t layout) {
  return translated([&] { return ObjectRef::share(torch::getTHPLayout(static_cast<at::Layout>(layout))).release(); });
}

PyObject* makeSize(const Dims& sizes) {
  ObjectRef size = checked(THPSizeType.tp_alloc(&THPSizeType, static_cast<Py_ssize_t>(sizes.size())));
  for (uint32_t i = 0; i < sizes.size(); i++) PyTuple_SET_ITEM(size.get(), i, checked(PyLong_FromLongLong(sizes[i])).release());
  return size.release();
}

}  // namespace cdynamo
