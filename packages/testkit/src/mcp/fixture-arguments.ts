import { parseArgs } from 'node:util'
import type { FixtureOptions } from './state/options.ts'

type Values = Record<string, string | boolean | undefined>

const TEXT = { type: 'string' } as const
const FLAG = { type: 'boolean' } as const

/** The flags of the process form. Throws on anything it does not know: a misspelt fault switch must not pass a test. */
export function parseFixtureArguments(argv: readonly string[]): FixtureOptions {
  const options = {
    era: TEXT,
    transport: TEXT,
    port: TEXT,
    host: TEXT,
    name: TEXT,
    'response-mode': TEXT,
    'no-sessions': FLAG,
    'unknown-session-status': TEXT,
    'page-size': TEXT,
    'ttl-ms': TEXT,
    only: TEXT,
    'odd-tools': FLAG,
    'ask-timeout-ms': TEXT,
    'sse-endpoint': TEXT,
    'stdio-mode': TEXT,
    'stdio-probe': TEXT,
  }
  const values: Values = parseArgs({ args: [...argv], options, strict: true }).values
  const parsed = {
    era: choice(values, 'era', ['dual', 'legacy', 'modern']),
    transport: choice(values, 'transport', ['http', 'sse', 'stdio']),
    port: integer(values, 'port'),
    host: text(values, 'host'),
    name: text(values, 'name'),
    responseMode: choice(values, 'response-mode', ['auto', 'sse', 'json']),
    sessions: values['no-sessions'] === true ? false : undefined,
    unknownSessionStatus: statusOf(integer(values, 'unknown-session-status')),
    pageSize: integer(values, 'page-size'),
    ttlMs: integer(values, 'ttl-ms'),
    only: text(values, 'only')?.split(','),
    oddTools: values['odd-tools'] === true ? true : undefined,
    askTimeoutMs: integer(values, 'ask-timeout-ms'),
    sseEndpoint: choice(values, 'sse-endpoint', ['relative', 'absolute', 'foreign']),
    stdioMode: choice(values, 'stdio-mode', ['latch', 'interleave']),
    stdioProbe: choice(values, 'stdio-probe', ['error', 'silent', 'exit']),
  }
  return Object.fromEntries(Object.entries(parsed).filter(([, value]) => value !== undefined)) as FixtureOptions
}

/** Flags that a server in a pod receives through its environment. */
export function environmentArguments(env: NodeJS.ProcessEnv): string[] {
  const { MCP_TRANSPORT: transport, MCP_PORT: port, MCP_HOST: host } = env
  const flags = { transport: transport === 'streamable-http' ? 'http' : transport, port, host }
  return Object.entries(flags).flatMap(([name, value]) => (value === undefined ? [] : [`--${name}`, value]))
}

/** The opposite: `parseFixtureArguments(toFixtureArguments(options))` gives the same options. */
export function toFixtureArguments(options: FixtureOptions): string[] {
  const { sessions, oddTools, only, keepAliveMs, maxBodyBytes, ...plain } = options
  const flags = Object.entries(plain).flatMap(([name, value]) => (value === undefined ? [] : [`--${kebab(name)}`, String(value)]))
  if (sessions === false) flags.push('--no-sessions')
  if (oddTools) flags.push('--odd-tools')
  if (only) flags.push('--only', only.join(','))
  return flags
}

function text(values: Values, flag: string): string | undefined {
  const value = values[flag]
  return typeof value === 'string' ? value : undefined
}

function choice<const T extends string>(values: Values, flag: string, allowed: readonly T[]): T | undefined {
  const value = text(values, flag)
  if (value === undefined) return undefined
  const found = allowed.find((candidate) => candidate === value)
  if (found === undefined) throw new Error(`--${flag} must be one of ${allowed.join(', ')}`)
  return found
}

function integer(values: Values, flag: string): number | undefined {
  const value = text(values, flag)
  if (value === undefined) return undefined
  if (!/^\d+$/.test(value)) throw new Error(`--${flag} must be a number`)
  return Number(value)
}

function statusOf(status: number | undefined): 404 | 400 | undefined {
  if (status === undefined || status === 404 || status === 400) return status
  throw new Error('--unknown-session-status must be 404 or 400')
}

function kebab(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}
