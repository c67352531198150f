import fc from 'fast-check'
import { expect, it } from 'vitest'
import { bearerChallenge } from './challenge.ts'

it('is written as RFC 6750 wants it', () => {
  expect(bearerChallenge({ realm: 'mcp-registry', error: 'invalid_token', description: 'token validation failed' })).toBe(
    'Bearer realm="mcp-registry", error="invalid_token", error_description="token validation failed"',
  )
  expect(bearerChallenge({ realm: 'r', resourceMetadata: 'https://x.example/.well-known/oauth-protected-resource', scope: 'a b' })).toBe(
    'Bearer realm="r", resource_metadata="https://x.example/.well-known/oauth-protected-resource", scope="a b"',
  )
})

it('keeps values inside their quotes and on their line', () => {
  expect(bearerChallenge({ realm: 'a"b\\c\r\nSet-Cookie: x=1' })).toBe('Bearer realm="a\\"b\\\\cSet-Cookie: x=1"')
  const text = fc.uint8Array({ maxLength: 40 }).map((bytes) => Buffer.from(bytes).toString('latin1'))
  fc.assert(
    fc.property(text, text, (realm, description) => {
      const challenge = bearerChallenge({ realm, description })
      expect(/^Bearer realm="(?:[^"\\]|\\.)*", error_description="(?:[^"\\]|\\.)*"$/.test(challenge)).toBe(true)
      expect(/^[\x20-\x7e]*$/.test(challenge)).toBe(true)
    }),
  )
})
