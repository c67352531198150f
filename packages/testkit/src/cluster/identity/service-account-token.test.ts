import { generateKeyPairSync, verify } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import { mintServiceAccountToken } from './service-account-token.ts'

const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' })

describe('mintServiceAccountToken', () => {
  test('is signed as ES256 demands', () => {
    const [header = '', claims = '', signature = ''] = mint({ expiresInSeconds: 60 }).split('.')
    const key = { key: publicKey, dsaEncoding: 'ieee-p1363' as const }
    expect(verify('sha256', Buffer.from(`${header}.${claims}`), key, Buffer.from(signature, 'base64url'))).toBe(true)
    expect(decode(header)).toEqual({ alg: 'ES256', typ: 'JWT' })
  })

  test('carries the claims that the API server reads', () => {
    expect(decode(mint({ expiresInSeconds: 60, groups: ['g'] }).split('.')[1])).toMatchObject({
      iss: 'https://kubernetes.default.svc.cluster.local',
      sub: 'system:serviceaccount:space:robot',
      aud: ['https://kubernetes.default.svc.cluster.local'],
      groups: ['g'],
      'kubernetes.io': { namespace: 'space', serviceaccount: { name: 'robot', uid: 'u1' } },
    })
  })

  test.each([3600, -3600])('expires in %d s and was issued before that', (expiresInSeconds) => {
    const { exp, iat, nbf } = decode(mint({ expiresInSeconds }).split('.')[1]) as { exp: number; iat: number; nbf: number }
    expect(Math.abs(exp - Date.now() / 1000 - expiresInSeconds)).toBeLessThan(30)
    expect(iat).toBeLessThan(exp)
    expect(nbf).toBe(iat)
  })
})

function mint(options: { expiresInSeconds: number; groups?: string[] }): string {
  return mintServiceAccountToken(privateKey, { subject: 'system:serviceaccount:space:robot', uid: 'u1', ...options })
}

function decode(part = ''): unknown {
  return JSON.parse(Buffer.from(part, 'base64url').toString())
}
