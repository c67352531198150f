import { describe, expect, it } from 'vitest'
import { resolveHeaderForward } from './header-forward.ts'
import { blockersOf, contributionOf, type SnapshotObjects, snapshot } from './testing/snapshot.ts'

const REMOTE = { remote_url: 'https://mcp.example.com' }
const header = (headerName: string, name = 'keys', key = 'k') => ({ headerName, valueSecretRef: { name, key } })
const resolve = (fromSecret: ReturnType<typeof header>[], plain: Record<string, string> = {}, objects: SnapshotObjects = {}) =>
  resolveHeaderForward({
    headerForward: { addPlaintextHeaders: plain, addHeadersFromSecret: fromSecret },
    name: 'my-proxy',
    lookup: snapshot({ secrets: { keys: ['k', 'l'], more: ['k'] }, ...objects }),
  })

describe('resolveHeaderForward', () => {
  it('adds nothing when nothing is asked for', () => {
    expect(contributionOf(resolve([]))).toEqual({})
  })

  it('gives values of Secrets to the proxy by variables, and only their names to the RunConfig', () => {
    expect(contributionOf(resolve([header('X-Api.Key'), header('x-tenant', 'more')], { 'X-Plain': 'p' }), REMOTE)).toEqual({
      runConfig: {
        header_forward: {
          add_plaintext_headers: { 'X-Plain': 'p' },
          add_headers_from_secret: { 'X-Api.Key': 'HEADER_FORWARD_X_API_KEY_MY_PROXY', 'x-tenant': 'HEADER_FORWARD_X_TENANT_MY_PROXY' },
        },
      },
      env: [
        { name: 'TOOLHIVE_SECRET_HEADER_FORWARD_X_API_KEY_MY_PROXY', valueFrom: { secretKeyRef: { name: 'keys', key: 'k' } } },
        { name: 'TOOLHIVE_SECRET_HEADER_FORWARD_X_TENANT_MY_PROXY', valueFrom: { secretKeyRef: { name: 'more', key: 'k' } } },
      ],
      secrets: ['keys', 'more'],
    })
  })

  it('never uses one variable for two headers', () => {
    const { runConfig, env } = contributionOf(resolve([header('X-A'), header('X.A', 'keys', 'l'), header('X_A', 'more')]), REMOTE)
    expect(runConfig?.header_forward?.add_headers_from_secret).toEqual({
      'X-A': 'HEADER_FORWARD_X_A_MY_PROXY',
      'X.A': 'HEADER_FORWARD_X_A_MY_PROXY_2',
      X_A: 'HEADER_FORWARD_X_A_MY_PROXY_3',
    })
    expect(new Set(env?.map(({ name }) => name)).size).toBe(3)
  })

  it('is blocked by Secrets and keys that are missing, all named', () => {
    expect(blockersOf(resolve([header('A', 'gone'), header('B', 'keys', 'm'), header('C')]))).toEqual([
      {
        condition: 'ConfigurationValid',
        reason: 'HeaderSecretNotFound',
        message:
          'spec.headerForward.addHeadersFromSecret[A] names Secret gone, which does not exist: create it with the key k; ' +
          'spec.headerForward.addHeadersFromSecret[B] names key m, which Secret keys does not have: add it',
      },
    ])
  })
})
