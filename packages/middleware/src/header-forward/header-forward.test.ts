import type { MutableHeaderMap } from '@thv/http/header-map'
import { describe, expect, it } from 'vitest'
import { InvalidOptions } from '../pipeline/invalid-options.ts'
import type { Middleware } from '../pipeline/middleware.ts'
import { compilePipeline } from '../pipeline/pipeline.ts'
import { testHop } from '../testing/test-context.ts'
import { createHeaderForward } from './header-forward.ts'

const headerForward = (headers: Record<string, string>, warn: (message: string) => void = () => {}) =>
  createHeaderForward({ headers }, { warn })

describe('header forward', () => {
  it('sets names in lower case', () => {
    const set: MutableHeaderMap = {}
    compilePipeline([headerForward({ 'X-Api-Key': 'k', 'x-tenant': 't' })]).headers(testHop(), set)
    expect(set).toEqual({ 'x-api-key': 'k', 'x-tenant': 't' })
  })

  it('never replaces a header that authentication sets, whatever the order', () => {
    const auth: Middleware = {
      name: 'auth',
      headers(_hop, set) {
        set['authorization'] = 'Bearer real'
      },
    }
    const forward = headerForward({ Authorization: 'Basic forwarded' })
    for (const middleware of [
      [auth, forward],
      [forward, auth],
    ]) {
      const set: MutableHeaderMap = {}
      compilePipeline(middleware).headers(testHop(), set)
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
    expect(() => headerForward({ [name]: 'v' })).toThrow(InvalidOptions)
  })

  it('gives way to credentials of the hop, and warns where it sets Authorization', () => {
    const warnings: string[] = []
    const set: MutableHeaderMap = {}
    const pipeline = compilePipeline([headerForward({ Authorization: 'Basic forwarded' }, (message) => warnings.push(message))])
    pipeline.headers(testHop({ credentials: { authorization: 'Bearer ours' } }), set)
    expect(set).toEqual({ authorization: 'Bearer ours' })
    expect(warnings).toEqual([expect.stringContaining('Authorization')])
  })

  it('rejects invalid names and values without quoting the value', () => {
    expect(() => headerForward({ 'X Key': 'v' })).toThrow(/is not a valid header name/)
    expect(() => headerForward({ 'X-Key': 'secret\r\nInjected: 1' })).toThrow(/^(?!.*secret)/)
    expect(() => headerForward({ 'X-Key': 'a', 'x-key': 'b' })).toThrow(/x-key is set twice/)
  })
})
