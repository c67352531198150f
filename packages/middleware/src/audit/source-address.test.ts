import type { Exchange } from '@thv/http/server/exchange'
import { expect, it } from 'vitest'
import { createSourceAddress } from './source-address.ts'

const PROXIES = ['10.0.0.0/8', '2001:db8::1']

it.each([
  ['headers are not trusted', { trusts: false, peer: '10.0.0.1', header: '6.6.6.6' }, '10.0.0.1'],
  ['there is no header', { peer: '10.0.0.1' }, '10.0.0.1'],
  ['one proxy', { peer: '10.0.0.1', header: '6.6.6.6' }, '6.6.6.6'],
  ['the client wrote an entry', { peer: '10.0.0.1', header: '1.1.1.1, 6.6.6.6' }, '6.6.6.6'],
  ['two proxies', { peer: '10.0.0.1', header: '1.1.1.1, 6.6.6.6, 10.2.3.4' }, '6.6.6.6'],
  ['only proxies', { peer: '10.0.0.1', header: '10.9.9.9, 10.2.3.4' }, '10.9.9.9'],
  ['the peer is no proxy', { peer: '7.7.7.7', header: '6.6.6.6' }, '7.7.7.7'],
  ['an entry is no address', { peer: '10.0.0.1', header: '6.6.6.6, evil\u0000, 10.2.3.4' }, '10.2.3.4'],
  ['a hundred entries of the client', { peer: '10.0.0.1', header: `${'1.1.1.1, '.repeat(200)}6.6.6.6` }, '6.6.6.6'],
  ['ports and brackets', { peer: '::ffff:10.0.0.1', header: '[2001:db8::2]:80, 10.2.3.4:1234' }, '2001:db8::2'],
  ['an IPv6 proxy', { peer: '2001:db8::1', header: '::ffff:6.6.6.6' }, '6.6.6.6'],
])(
  'the address of a client: %s',
  (_name, { trusts = true, peer, header }: { trusts?: boolean; peer: string; header?: string }, expected) => {
    const exchange = { remoteAddress: peer, headers: { 'x-forwarded-for': header } } as unknown as Exchange
    expect(createSourceAddress({ trustProxyHeaders: trusts, trustedProxies: PROXIES })(exchange)).toBe(expected)
  },
)

it('without a list of proxies the last entry counts', () => {
  const exchange = { remoteAddress: '7.7.7.7', headers: { 'x-forwarded-for': '1.1.1.1, 6.6.6.6' } } as unknown as Exchange
  expect(createSourceAddress({ trustProxyHeaders: true, trustedProxies: [] })(exchange)).toBe('6.6.6.6')
})
