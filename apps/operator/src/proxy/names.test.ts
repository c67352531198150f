import { describe, expect, test } from 'vitest'
import { proxyNames, serverNames, workloadsThatName } from './names.ts'

describe('workloadsThatName', () => {
  test.each(['MCPServer', 'MCPRemoteProxy'] as const)('finds the %s of each of its objects', (kind) => {
    for (const name of ['a', 'weather', 'a-proxy', 'mcp-a']) {
      for (const object of Object.values(proxyNames(kind, name))) expect(workloadsThatName(kind, object)).toContain(name)
    }
  })
  test('and of the accounts and policies of servers', () => {
    const { account, networkPolicy } = serverNames('weather')
    expect(workloadsThatName('MCPServer', account)).toEqual([account, 'weather'])
    expect(workloadsThatName('MCPServer', networkPolicy)).toEqual([networkPolicy, 'weather'])
    expect(workloadsThatName('MCPRemoteProxy', account)).toEqual([account])
  })
  test('never an empty name', () => {
    expect(workloadsThatName('MCPServer', '-sa')).not.toContain('')
    expect(workloadsThatName('MCPServer', 'mcp-proxy')).not.toContain('')
  })
})
