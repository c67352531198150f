import { describe, expect, it } from 'vitest'
import { environmentArguments, parseFixtureArguments, toFixtureArguments } from './fixture-arguments.ts'
import type { FixtureOptions } from './state/options.ts'

describe('the flags of the fixture process', () => {
  it('are those of the manual', () => {
    const argv = '--era legacy --transport stdio --stdio-mode interleave --port 4711'.split(' ')
    expect(parseFixtureArguments(argv)).toEqual({ era: 'legacy', transport: 'stdio', stdioMode: 'interleave', port: 4711 })
  })

  it('carry every option there and back', () => {
    const options: Required<Omit<FixtureOptions, 'keepAliveMs' | 'maxBodyBytes'>> = {
      era: 'modern',
      transport: 'http',
      port: 1,
      host: '0.0.0.0',
      name: 'other',
      responseMode: 'json',
      sessions: false,
      unknownSessionStatus: 400,
      pageSize: 3,
      ttlMs: 500,
      only: ['echo', 'slow'],
      oddTools: true,
      askTimeoutMs: 10,
      sseEndpoint: 'foreign',
      stdioMode: 'interleave',
      stdioProbe: 'exit',
    }
    expect(parseFixtureArguments(toFixtureArguments(options))).toEqual(options)
    expect(parseFixtureArguments(toFixtureArguments({}))).toEqual({})
  })

  it('may come from the environment that a pod gets, and an argument wins', () => {
    const flags = environmentArguments({ MCP_TRANSPORT: 'streamable-http', MCP_PORT: '8080', MCP_HOST: '0.0.0.0' })
    expect(parseFixtureArguments([...flags, '--port', '9090'])).toEqual({ transport: 'http', port: 9090, host: '0.0.0.0' })
    expect(parseFixtureArguments(environmentArguments({ MCP_TRANSPORT: 'stdio' }))).toEqual({ transport: 'stdio' })
    expect(environmentArguments({})).toEqual([])
    expect(() => parseFixtureArguments(environmentArguments({ MCP_TRANSPORT: 'smoke' }))).toThrow('--transport must be one of')
  })

  it.for([
    ['--eras', 'dual'],
    ['--era', 'old'],
    ['--port', 'x'],
    ['--unknown-session-status', '500'],
  ])('refuse %j', (argv) => {
    expect(() => parseFixtureArguments(argv)).toThrow()
  })
})
