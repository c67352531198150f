import { BlockList, isIPv6 } from 'node:net'
import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { classifyIp, type IpClass, parseIp } from './ip-address.ts'

const TABLE: readonly [IpClass, string][] = [
  ['unspecified', '0.0.0.0 0.1.2.3 0.255.255.255 :: 0:0:0:0:0:0:0:0 ::ffff:0.0.0.0 ::2 64:ff9b:: 2002:0:1::'],
  [
    'loopback',
    '127.0.0.1 127.0.0.2 127.255.255.255 ::1 0:0:0:0:0:0:0:1 ::ffff:127.0.0.1 ::ffff:7f00:1 ::127.0.0.1 64:ff9b::127.0.0.1 64:ff9b::7f00:1 2002:7f00:1:: ::ffff:0:127.0.0.1',
  ],
  [
    'link-local',
    '169.254.0.0 169.254.169.254 169.254.170.2 169.254.255.255 fe80:: fe80::1 fe80::1%eth0 febf:ffff::1 ::ffff:169.254.169.254 ::ffff:a9fe:a9fe ::169.254.169.254 64:ff9b::a9fe:a9fe 64:ff9b:1::a9fe:a9fe 64:ff9b:1:808:8:800:a9fe:a9fe 64:ff9b:1:a9fe:a9:fe00:: 2002:a9fe:a9fe::1 2001:0:1:2:3:4:5601:5601 2001:db8::5efe:169.254.169.254 2001:db8::200:5efe:a9fe:a9fe',
  ],
  ['metadata', '100.100.100.200 168.63.129.16 192.0.0.192 fd00:ec2::254 fd20:ce::254 ::ffff:100.100.100.200 64:ff9b::168.63.129.16'],
  ['multicast', '224.0.0.1 239.255.255.255 255.255.255.255 ff02::1 ::ffff:224.0.0.1'],
  [
    'private',
    '10.0.0.0 10.255.255.255 172.16.0.1 172.31.255.255 192.168.0.1 100.64.0.1 100.127.255.255 192.0.0.1 198.18.0.1 240.0.0.1 fc00::1 fdff::1 fec0::1 ::ffff:10.1.2.3 ::ffff:c0a8:1 64:ff9b::10.0.0.1 2002:a00:1::',
  ],
  [
    'public',
    '1.1.1.1 8.8.8.8 11.0.0.0 9.255.255.255 172.15.255.255 172.32.0.0 192.167.255.255 192.169.0.0 169.253.255.255 169.255.0.0 126.255.255.255 128.0.0.0 100.63.255.255 100.128.0.0 223.255.255.255 2606:4700:4700::1111 fbff::1 2001:db8::1 ::ffff:8.8.8.8 64:ff9b::8.8.8.8 64:ff9b:1::8.8.8.8 64:ff9b:1:808:8:800:: 2002:808:808:: 2001:db8::5efe:8.8.8.8',
  ],
]

describe('classifyIp', () => {
  it.each(TABLE.flatMap(([is, addresses]) => addresses.split(' ').map((address) => [address, is] as const)))('%s is %s', (address, is) => {
    expect(classifyIp(address)).toBe(is)
  })

  it.each([
    '',
    'localhost',
    '127.1',
    '0x7f000001',
    '2130706433',
    '0177.0.0.1',
    '127.0.0.1.',
    '127.0.0.1 ',
    '[::1]',
    ':::',
    '1::2::3',
    '::g',
    '1.2.3.4.5',
    '256.0.0.1',
    '::ffff:127.1',
  ])('does not take %j for an address', (text) => expect(classifyIp(text)).toBeUndefined())

  it('agrees with the system on how an IPv6 address is spelled', () => {
    fc.assert(
      fc.property(fc.ipV6(), (address) => {
        fc.pre(isIPv6(address))
        const bytes = parseIp(address) ?? []
        expect(bytes).toHaveLength(16)
        const groups = Array.from({ length: 8 }, (_, i) => (((bytes[2 * i] ?? 0) << 8) | (bytes[2 * i + 1] ?? 0)).toString(16))
        const list = new BlockList()
        list.addAddress(groups.join(':'), 'ipv6')
        expect(list.check(address, 'ipv6')).toBe(true)
      }),
    )
  })

  it('says the same of an IPv4 address however IPv6 carries it', () => {
    fc.assert(
      fc.property(fc.ipV4(), (address) => {
        const [a = 0, b = 0, c = 0, d = 0] = parseIp(address) ?? []
        const hex = `${((a << 8) | b).toString(16)}:${((c << 8) | d).toString(16)}`
        fc.pre(hex !== '0:0' && hex !== '0:1') // :: and ::1 are not compatible addresses
        const is = classifyIp(address)
        for (const carried of [`::ffff:${address}`, `::ffff:${hex}`, `::${hex}`, `64:ff9b::${hex}`, `2002:${hex}::`, `::ffff:0:${hex}`])
          expect([carried, classifyIp(carried)]).toEqual([carried, is])
      }),
    )
  })
})
