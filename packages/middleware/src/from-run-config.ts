import type { RunConfig } from '@thv/runconfig/run-config'
import { runConfigError } from '@thv/runconfig/run-config-errors'
import type { Log } from '@thv/telemetry/log'
import { headerForward } from './header-forward/header-forward.ts'
import { compilePipeline, type Middleware, type Pipeline } from './pipeline/pipeline.ts'
import { toolFilter } from './tool-filter/tool-filter.ts'
import { compileToolNames } from './tool-filter/tool-names.ts'

export interface MiddlewareDeps {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly log: Log
}

type MakeLink = (config: RunConfig, deps: MiddlewareDeps) => Middleware | undefined

/**
 * What each link is made of, outermost first, under the names of `run-config/unsupported.ts`: a run config that asks for a link which is
 * not here never gets this far.
 */
export const LINK_MAKERS: readonly (readonly [name: string, make: MakeLink])[] = [
  ['tool-filter', makeToolFilter],
  ['header-forward', makeHeaderForward],
]

/** Links of the original that are part of the front here: it cannot be had without them. */
export const BUILT_IN: readonly string[] = ['bodylimit', 'mcp-parser', 'recovery', 'origin']

/** Throws `run_config_invalid`. */
export function buildPipeline(config: RunConfig, deps: MiddlewareDeps): Pipeline {
  return compilePipeline(LINK_MAKERS.map(([, make]) => make(config, deps)).filter((link) => link !== undefined))
}

function makeToolFilter({ tools_filter: filter, tools_override: overrides }: RunConfig, { log }: MiddlewareDeps): Middleware | undefined {
  if (filter.length === 0 && Object.keys(overrides).length === 0) return undefined
  const names = compileToolNames({ filter, overrides })
  for (const warning of names.warnings) log.warn(warning)
  return toolFilter(names)
}

function makeHeaderForward({ header_forward: forward }: RunConfig, { env, log }: MiddlewareDeps): Middleware | undefined {
  if (forward === undefined) return undefined
  const secrets = Object.entries(forward.add_headers_from_secret).map(([name, secret]) => [name, secretOf(secret, env)] as const)
  const headers = { ...forward.add_plaintext_headers, ...Object.fromEntries(secrets) }
  if (Object.keys(headers).some((name) => name.toLowerCase() === 'authorization'))
    log.warn('header_forward sets Authorization: whatever authenticates at the remote server goes over it')
  return Object.keys(headers).length === 0 ? undefined : headerForward(headers)
}

/** Missing is fatal: the remote server would be called without what it needs. */
function secretOf(secret: string, env: MiddlewareDeps['env']): string {
  const variable = `TOOLHIVE_SECRET_${secret}`
  const value = env[variable]
  if (value === undefined || value === '')
    throw runConfigError('run_config_invalid', `header_forward.add_headers_from_secret: the variable ${variable} is not set`)
  return value.replace(/\r?\n$/, '') // as Secrets from files tend to end
}
