import { BUILT_MIDDLEWARE, type BuiltMiddleware } from '@thv/runconfig/middleware-table'
import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { Log } from '@thv/telemetry/log'
import { createHeaderForward } from './header-forward/header-forward.ts'
import { InvalidOptions } from './pipeline/invalid-options.ts'
import type { Middleware } from './pipeline/middleware.ts'
import { compilePipeline, type Pipeline } from './pipeline/pipeline.ts'
import { createToolFilter } from './tool-filter/tool-filter.ts'

export interface MiddlewareDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

/** Undefined: the document does not ask for it. */
type Make = (config: RunConfig, deps: MiddlewareDeps) => Middleware | undefined

/** One factory for every built middleware of the table; the compiler rejects a missing or an extra one. */
const MAKERS: Record<BuiltMiddleware, Make> = {
  'tool-filter': makeToolFilter,
  'header-forward': makeHeaderForward,
}

/** The pipeline that a RunConfig asks for, in the order of the table. Throws `run_config_invalid`. */
export function pipelineFromRunConfig(config: RunConfig, deps: MiddlewareDeps): Pipeline {
  return compilePipeline(BUILT_MIDDLEWARE.map((name) => MAKERS[name](config, deps)).filter((made) => made !== undefined))
}

function makeToolFilter({ tools_filter: filter, tools_override: overrides }: RunConfig, { log }: MiddlewareDeps): Middleware | undefined {
  if (filter.length === 0 && Object.keys(overrides).length === 0) return undefined
  const warn = (message: string) => log.warn(`tools_filter: ${message}`)
  return from('tools_override', () => createToolFilter({ filter, overrides }, { warn }))
}

function makeHeaderForward({ header_forward: forward }: RunConfig, { env, log }: MiddlewareDeps): Middleware | undefined {
  if (forward === undefined) return undefined
  const secrets = Object.entries(forward.add_headers_from_secret).map(([name, secret]) => [name, secretOf(secret, env)] as const)
  const headers = { ...forward.add_plaintext_headers, ...Object.fromEntries(secrets) }
  if (Object.keys(headers).length === 0) return undefined
  const warn = (message: string) => log.warn(`header_forward: ${message}`)
  return from('header_forward', () => createHeaderForward({ headers }, { warn }))
}

/** Names the field in the error. */
function from(field: string, make: () => Middleware): Middleware {
  try {
    return make()
  } catch (error) {
    throw error instanceof InvalidOptions ? runConfigError('run_config_invalid', `${field}: ${error.message}`) : error
  }
}

/** A missing secret is fatal: the remote server would be called without a header it needs. */
function secretOf(secret: string, env: MiddlewareDeps['env']): string {
  const variable = `TOOLHIVE_SECRET_${secret}`
  const value = env[variable]
  if (value === undefined || value === '')
    throw runConfigError('run_config_invalid', `header_forward.add_headers_from_secret: the variable ${variable} is not set`)
  return value.replace(/\r?\n$/, '') // Secrets made from files often end with a line break
}
