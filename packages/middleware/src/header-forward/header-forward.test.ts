import type { MutableHeaderMap } from '@thv/http/header-map'
import { describe, expect, it } from 'vitest'
import { compilePipeline, type Middleware } from '../pipeline/pipeline.ts'
import { headerForward } from './header-forward.ts'

const CALLER = { principal: 'anonymous' }

describe('header forward', () => {
  it('sets names in lower case', () => {
    const set: MutableHeaderMap = {}
    compilePipeline([headerForward({ 'X-Api-Key': 'k', 'x-tenant': 't' })]).headers(CALLER, set)
    expect(set).toEqual({ 'x-api-key': 'k', 'x-tenant': 't' })
  })

  it('never goes over what authentication sets, wherever it stands in the chain', () => {
    const auth: Middleware = {
      name: 'auth',
      headers(_caller, set) {
        set['authorization'] = 'Bearer real'
      },
    }
    const forward = headerForward({ Authorization: 'Basic forwarded' })
    for (const middleware of [
      [auth, forward],
      [forward, auth],
    ]) {
      const set: MutableHeaderMap = {}
      compilePipeline(middleware).headers(CALLER, set)
      expect(set).toEqual({ authorization: 'Bearer real' })
    }
  })

  it.each([
    'Host',
    'Connection',
    'Keep-Alive',
    'TE',
    'Trailer',
    'Upgrade',
    'HTTP2-Settings',
    'Proxy-Authorization',
    'Proxy-Authenticate',
    'Proxy-Connection',
    'Transfer-Encoding',
    'Content-Length',
    'Content-Type',
    'Accept',
    'Forwarded',
    'X-Forwarded-For',
    'X-Forwarded-Host',
    'X-Forwarded-Proto',
    'X-Real-IP',
    'Mcp-Session-Id',
    'MCP-Protocol-Version',
    'Mcp-Method',
    'Mcp-Name',
    'Mcp-Param-Region',
    'Last-Event-ID',
  ])('refuses %s', (name) => {
    expect(() => headerForward({ [name]: 'v' })).toThrow(expect.objectContaining({ code: 'run_config_invalid' }))
  })

  it('refuses what is no header, without quoting the value', () => {
    expect(() => headerForward({ 'X Key': 'v' })).toThrow(/not the name of a header/)
    expect(() => headerForward({ 'X-Key': 'secret\r\nInjected: 1' })).toThrow(/^(?!.*secret)/)
    expect(() => headerForward({ 'X-Key': 'a', 'x-key': 'b' })).toThrow(/twice/)
  })
})
