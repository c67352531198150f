import { type ErrorCode, ThvError } from '@thv/kernel/errors'
import type { Problem } from './field.ts'
import type { UnsupportedField } from './middleware-table.ts'

const RUN_CONFIG_ERRORS = [
  'middleware_unsupported',
  'run_config_invalid',
  'run_config_missing',
  'run_config_stale',
] as const satisfies readonly ErrorCode[]

export type RunConfigErrorCode = (typeof RUN_CONFIG_ERRORS)[number]

/** Exit code of a process with an invalid run config (EX_CONFIG of sysexits): starting it again as it is cannot help. */
export const RUN_CONFIG_EXIT_CODE = 78

export interface RunConfigErrorOptions {
  readonly cause?: unknown
  readonly details?: Record<string, unknown>
}

export function runConfigError(code: RunConfigErrorCode, message: string, options?: RunConfigErrorOptions): ThvError {
  return new ThvError(code, message, options)
}

export function isRunConfigError(e: unknown, code?: RunConfigErrorCode): e is ThvError {
  return e instanceof ThvError && (code === undefined ? RUN_CONFIG_ERRORS.some((own) => own === e.code) : e.code === code)
}

export function invalidRunConfig(file: string, problems: readonly Problem[]): ThvError {
  const count = problems.length === 1 ? 'a problem' : `${problems.length} problems`
  return runConfigError('run_config_invalid', `run config ${file} has ${count}: ${listed(problems)}`, { details: { file, problems } })
}

export function unsupportedMiddleware(fields: readonly UnsupportedField[]): ThvError {
  const list = fields.map(({ field, middleware }) => `${field} (middleware ${middleware})`).join(', ')
  const message = `the run config asks for middleware that this version does not have, and would be unguarded without: ${list}; remove the fields`
  return runConfigError('middleware_unsupported', message, { details: { fields: fields.map(({ field }) => field) } })
}

/** Bounded: a document can be wrong in thousands of places. The details hold them all. */
function listed(problems: readonly Problem[]): string {
  const shown = problems.slice(0, MAX_SHOWN).map(({ path, message }) => `${path === '' ? 'the document' : path} ${message}`)
  if (problems.length > MAX_SHOWN) shown.push(`and ${problems.length - MAX_SHOWN} more`)
  return shown.join('; ')
}

const MAX_SHOWN = 20
