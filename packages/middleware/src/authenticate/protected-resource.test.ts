import { describe, expect, it } from 'vitest'
import { testExchange } from '../testing/test-exchange.ts'
import { metadataAddress, type ProtectedResource, resourceAddress } from './protected-resource.ts'

const OPEN: ProtectedResource = { authorizationServers: [], scopes: [] }
const FORWARDED = { 'x-forwarded-host': 'mcp.example.com, inner', 'x-forwarded-proto': 'https, http', 'x-forwarded-prefix': '/team/a/' }

describe('the address of the resource', () => {
  it.each<[string, ProtectedResource, Record<string, string>, string, string | undefined]>([
    ['the address that the request came to', OPEN, { host: 'localhost:8080' }, '/mcp', 'http://localhost:8080/mcp'],
    ['without a path', OPEN, { host: 'MCP.Example.com' }, '', 'http://mcp.example.com'],
    ['an IPv6 address', OPEN, { host: '[::1]:8080' }, '/mcp', 'http://[::1]:8080/mcp'],
    ['no X-Forwarded without trust in proxies', OPEN, { host: 'a.example', ...FORWARDED }, '/mcp', 'http://a.example/mcp'],
    [
      'X-Forwarded of a trusted proxy',
      { ...OPEN, trustProxyHeaders: true },
      { host: 'a.example', ...FORWARDED },
      '/mcp',
      'https://mcp.example.com/team/a/mcp',
    ],
    ['the configured prefix', { ...OPEN, endpointPrefix: '/p' }, { host: 'a.example' }, '/mcp', 'http://a.example/p/mcp'],
    [
      'the configured address, whatever was called',
      { ...OPEN, url: 'https://a.example/x' },
      { host: 'b.example' },
      '/mcp',
      'https://a.example/x',
    ],
    ['no host', OPEN, {}, '/mcp', undefined],
    ['a host that is none', OPEN, { host: 'a b' }, '/mcp', undefined],
    [
      'a forwarded host that is none',
      { ...OPEN, trustProxyHeaders: true },
      { host: 'a.example', 'x-forwarded-host': 'x"y' },
      '',
      'http://a.example',
    ],
    [
      'a forwarded scheme that is none',
      { ...OPEN, trustProxyHeaders: true },
      { host: 'a.example', 'x-forwarded-proto': 'javascript' },
      '',
      'http://a.example',
    ],
    [
      'a forwarded prefix with another host',
      { ...OPEN, trustProxyHeaders: true },
      { host: 'a.example', 'x-forwarded-prefix': '//evil.example' },
      '',
      'http://a.example',
    ],
  ])('is %s', (_title, resource, headers, path, address) => {
    expect(resourceAddress(resource, testExchange(headers), path)).toBe(address)
  })
})

describe('the address of its metadata', () => {
  it.each<[string | undefined, string, string]>([
    [undefined, '/mcp', 'http://a.example/.well-known/oauth-protected-resource/mcp'],
    [undefined, '/', 'http://a.example/.well-known/oauth-protected-resource'],
    ['https://b.example', '/mcp', 'https://b.example/.well-known/oauth-protected-resource'],
    ['https://b.example/', '/mcp', 'https://b.example/.well-known/oauth-protected-resource'],
    ['https://b.example/x/mcp?t=1', '/mcp', 'https://b.example/.well-known/oauth-protected-resource/x/mcp?t=1'],
  ])('of %j called at %s is %s', (url, path, address) => {
    expect(metadataAddress({ ...OPEN, url }, testExchange({ host: 'a.example' }), path)).toBe(address)
  })
})
