import { describe, expect, it } from 'vitest'
import { endpointSliceRules } from './endpoint-slice-rules.ts'

function problems(addressType: string, ...addresses: string[]): string[] {
  const slice = { metadata: { name: 's', namespace: 'a' }, addressType, endpoints: [{ addresses }] }
  return (endpointSliceRules.validate?.(slice) ?? []).map(({ message }) => message)
}

/** The rest is in the table of requests. Here is where the platform differs from the real server, which refuses these. */
describe('addresses of endpoints', () => {
  it('may be of the loopback network, where the pods of the platform live', () => {
    expect(problems('IPv4', '127.9.128.3', '127.0.0.1')).toEqual([])
    expect(problems('IPv6', '::1')).toEqual([])
  })

  it('may not stand for every machine', () => {
    expect(problems('IPv4', '0.0.0.0')).toEqual(['Invalid value: "0.0.0.0": may not be unspecified (0.0.0.0)'])
  })
})
