import type { MutableHeaderMap } from '@thv/http/header-map'
import { describe, expect, it } from 'vitest'
import { localAddress, remoteAddress } from './backend-address.ts'

describe('a server of ours', () => {
  it('gets the path of its endpoint and the query of the client', () => {
    const address = localAddress(new URL('http://127.0.0.1:9000/ignored'), '/mcp')
    expect(address.origin).toBe('http://127.0.0.1:9000')
    expect(address.target({ query: '' })).toBe('/mcp')
    expect(address.target({ query: 'a=1&b=%2C,' })).toBe('/mcp?a=1&b=%2C,')
  })

  it('receives the real client address, whatever the client claims', () => {
    const set: MutableHeaderMap = {}
    const headers = { host: 'proxy:8080', 'x-forwarded-for': '6.6.6.6' }
    localAddress(new URL('http://x'), '/mcp').forwarded({ remoteAddress: '10.0.0.7', headers }, set)
    expect(set).toEqual({ 'x-forwarded-for': '10.0.0.7', 'x-forwarded-host': 'proxy:8080', 'x-forwarded-proto': 'http' })
  })
})

describe('a server of somebody else', () => {
  it.each([
    ['https://h.example', '', '/mcp'],
    ['https://h.example', 'x=1', '/mcp?x=1'],
    ['https://h.example/', '', '/'],
    ['https://h.example/api/v1/mcp', '', '/api/v1/mcp'],
    ['https://h.example/api?tools=a,b', '', '/api?tools=a,b'],
    ['https://h.example/api?tools=a,b', 'x=1', '/api?tools=a,b&x=1'],
    ['https://h.example?key=1', 'x=1', '/mcp?key=1&x=1'],
    ['https://h.example/a b', '', '/a%20b'],
  ])('%s with query %j is asked for %s', (url, query, expected) => {
    expect(remoteAddress(url, '/mcp').target({ query })).toBe(expected)
  })

  it('learns its own scheme and nothing from in here', () => {
    const set: MutableHeaderMap = {}
    remoteAddress('https://h.example/mcp', '/mcp').forwarded({ remoteAddress: '10.0.0.7', headers: { host: 'inside' } }, set)
    expect(set).toEqual({ 'x-forwarded-proto': 'https' })
  })
})
