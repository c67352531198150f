import { describe, expect, it } from 'vitest'
import { ownHosts } from './own-hosts.ts'

describe('ownHosts', () => {
  it('accepts any host on the network where the user named none', () => {
    expect(ownHosts({ bound: '0.0.0.0', serviceHosts: ['mcp-x-proxy.team.svc.cluster.local'] })).toBeUndefined()
    expect(ownHosts({ bound: '10.0.0.7' })).toBeUndefined()
  })

  it('lists address, Service, pod and added names on a loopback address', () => {
    expect(
      ownHosts({
        bound: '127.4.0.9',
        serviceHosts: ['mcp-x-proxy.team.svc.cluster.local'],
        podName: 'x-abc',
        allowedHosts: ['mcp.example.com'],
      }),
    ).toEqual([
      '127.4.0.9',
      'mcp-x-proxy',
      'mcp-x-proxy.team',
      'mcp-x-proxy.team.svc',
      'mcp-x-proxy.team.svc.cluster.local',
      'x-abc.mcp-x-proxy.team.svc',
      'x-abc.mcp-x-proxy.team.svc.cluster.local',
      'x-abc.team.pod',
      'x-abc.team.pod.cluster.local',
      '127-4-0-9.mcp-x-proxy.team.svc',
      '127-4-0-9.mcp-x-proxy.team.svc.cluster.local',
      '127-4-0-9.team.pod',
      '127-4-0-9.team.pod.cluster.local',
      'mcp.example.com',
    ])
  })

  it('closes a proxy on the network once the user names hosts', () => {
    expect(ownHosts({ bound: '10.0.0.7', allowedHosts: ['mcp.example.com'] })).toEqual(['10.0.0.7', 'mcp.example.com'])
    expect(ownHosts({ bound: '::1', serviceHosts: ['a.b.svc.c'], podName: 'Not a label' })).toEqual([
      '[::1]',
      'a',
      'a.b',
      'a.b.svc',
      'a.b.svc.c',
    ])
    expect(ownHosts({ bound: 'fd00::7', allowedHosts: ['mcp.example.com'] })).toEqual(['[fd00::7]', 'mcp.example.com'])
    expect(ownHosts({ bound: '::', allowedHosts: ['mcp.example.com'] })).toContain('mcp.example.com')
  })
})
