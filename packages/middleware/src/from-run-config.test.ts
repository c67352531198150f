import { createOutbound } from '@thv/http/outbound/outbound'
import { systemClock } from '@thv/kernel/clock'
import { BUILT_MIDDLEWARE, type BuiltMiddleware } from '@thv/runconfig/middleware-table'
import { readRunConfig } from '@thv/runconfig/read-run-config'
import type { RunConfig } from '@thv/runconfig/run-config'
import { createMetrics } from '@thv/telemetry/metrics'
import { CollectingLog } from '@thv/telemetry/testing/collecting-log'
import { describe, expect, it } from 'vitest'
import { type MiddlewareDeps, pipelineFromRunConfig } from './from-run-config.ts'
import { testHop } from './testing/test-context.ts'

function configOf(document: object): RunConfig {
  const read = readRunConfig({ name: 'x', transport: 'streamable-http', remote_url: 'https://example.com/mcp', ...document })
  if (!read.ok) throw new TypeError(JSON.stringify(read.problems))
  return read.config
}

function depsOf(overrides: Partial<MiddlewareDeps> = {}): MiddlewareDeps {
  return { env: {}, log: new CollectingLog(), metrics: createMetrics(), clock: systemClock, outbound: createOutbound(), ...overrides }
}

describe('the middleware of a run config', () => {
  it('are none when nothing asks for any', () => {
    const pipeline = pipelineFromRunConfig(configOf({}), depsOf())
    expect(pipeline.editsStrays).toBe(false)
  })

  it('take header values from secrets', () => {
    const config = configOf({ header_forward: { add_plaintext_headers: { 'X-A': '1' }, add_headers_from_secret: { 'X-B': 'KEY' } } })
    const set = {}
    pipelineFromRunConfig(config, depsOf({ env: { TOOLHIVE_SECRET_KEY: 's3cret\n' } })).headers(testHop(), set)
    expect(set).toEqual({ 'x-a': '1', 'x-b': 's3cret' })
  })

  it('name the field when their options cannot work', () => {
    const make = (document: object) => () => pipelineFromRunConfig(configOf(document), depsOf())
    const twice = { a: { name: 'z', description: 'x' }, b: { name: 'y' } }
    expect(make({ tools_override: twice })).not.toThrow()
    expect(make({ header_forward: { add_plaintext_headers: { Host: 'x' } } })).toThrow(
      expect.objectContaining({
        code: 'run_config_invalid',
        message: expect.stringMatching(/^header_forward: "Host" is set by the proxy/),
      }),
    )
  })

  it('cannot be made when a secret is missing', () => {
    const config = configOf({ header_forward: { add_headers_from_secret: { 'X-B': 'KEY' } } })
    expect(() => pipelineFromRunConfig(config, depsOf())).toThrow(/TOOLHIVE_SECRET_KEY is not set/)
  })

  it('warn of filter entries that name no tool clients see', () => {
    const log = new CollectingLog()
    pipelineFromRunConfig(configOf({ tools_filter: ['old'], tools_override: { old: { name: 'new' } } }), depsOf({ log }))
    expect(log.lines).toEqual([expect.stringMatching(/^warn tools_filter: old is the server's own name/)])
  })
})

it('a factory for every built middleware is a matter of types', () => {
  type Made = Record<BuiltMiddleware, boolean>
  const { 'header-forward': _, ...others } = Object.fromEntries(BUILT_MIDDLEWARE.map((name) => [name, true])) as Made
  // @ts-expect-error header-forward is missing
  const missing: Made = others
  // @ts-expect-error awssts is not built
  const unbuilt: BuiltMiddleware = 'awssts'
  expect(Object.keys(missing)).not.toContain(unbuilt)
})
