import { type ErrorCode, ThvError } from '@thv/kernel/errors'

export type RuntimeErrorCode = Extract<
  ErrorCode,
  | 'attach_unavailable'
  | 'image_invalid'
  | 'package_install_failed'
  | 'process_start_failed'
  | 'program_missing'
  | 'runtime_unsuitable'
  | 'stdio_capacity'
  | 'workload_foreign'
>

export function runtimeError(
  code: RuntimeErrorCode,
  message: string,
  options?: { cause?: unknown; details?: Record<string, unknown> },
): ThvError {
  return new ThvError(code, message, options)
}

export function isRuntimeError(e: unknown, code: RuntimeErrorCode): e is ThvError {
  return e instanceof ThvError && e.code === code
}
