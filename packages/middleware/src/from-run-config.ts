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

type MakeLink = (config: RunConfig, deps: MiddlewareDeps) => Middleware | undefined

/** Outermost first, under the names of the table in `@thv/runconfig/middleware-table`. */
export const LINK_MAKERS: readonly (readonly [name: string, make: MakeLink])[] = [
  ['tool-filter', makeToolFilter],
  ['header-forward', makeHeaderForward],
]

/** Middleware of ToolHive (Go) that are part of the gateway here. */
export const BUILT_IN: readonly string[] = ['bodylimit', 'mcp-parser', 'recovery', 'origin']

/** Throws `run_config_invalid`. */
export function buildPipeline(config: RunConfig, deps: MiddlewareDeps): Pipeline {
  return compilePipeline(LINK_MAKERS.map(([, make]) => make(config, deps)).filter((made) => made !== undefined))
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
