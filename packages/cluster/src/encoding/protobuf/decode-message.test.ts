import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { decodeKind } from './decode-message.ts'
import { fieldsOf, messageOfKind } from './message-table.ts'
import { readEnvelope } from './read-envelope.ts'
import { field, number } from './testing/encode.ts'
import { ProtobufError } from './wire-reader.ts'

const meta = (...parts: Buffer[]) => field(1, ...parts)

describe('protobuf bodies', () => {
  it('become the JSON that Go writes', () => {
    const bytes = Buffer.concat([
      meta(field(1, 'm'), field(2, ''), number(7, 0), field(8), field(11, field(1, 'a'), field(2, 'b')), field(11, field(1, 'empty'))),
      field(2, field(1, '__proto__'), field(2, 'own')),
      field(3, field(1, 'raw'), field(2, Buffer.from([0, 255]))),
      number(4, 0),
    ])
    const decoded = decodeKind('v1', 'ConfigMap', bytes)
    expect(decoded).toEqual({
      metadata: { name: 'm', labels: { a: 'b', empty: '' } },
      data: JSON.parse('{"__proto__":"own"}'),
      binaryData: { raw: 'AP8=' },
      immutable: false,
    })
    expect(Object.keys(decoded?.['data'] ?? {})).toEqual(['__proto__'])
  })

  it('keep a zero that was set, and leave out one that was not', () => {
    const spec = (...parts: Buffer[]) => decodeKind('apps/v1', 'Deployment', field(2, ...parts))
    expect(spec(number(1, 0), number(5, 0), number(7, 0))).toEqual({ spec: { replicas: 0 } })
    expect(spec(number(1, 3), number(5, 4), number(7, 1))).toEqual({ spec: { replicas: 3, minReadySeconds: 4, paused: true } })
  })

  it('have numbers of all sizes, with a sign', () => {
    const owned = (value: number | bigint) => decodeKind('v1', 'DeleteOptions', number(1, value))
    for (const value of [0, 1, 127, 128, 300, 2 ** 28 - 1, 2 ** 28, 2 ** 31, 2 ** 35, Number.MAX_SAFE_INTEGER, -1, -(2 ** 40)])
      expect(owned(value)).toEqual({ gracePeriodSeconds: value })
  })

  it('have quantities, texts that may be numbers, times and inline structs', () => {
    const container = field(2, field(1, 'c'), field(8, field(1, field(1, 'cpu'), field(2, field(1, '100m')))))
    const volume = field(1, field(1, 'v'), field(2, field(19, field(1, field(1, 'map')), number(3, 0))))
    expect(decodeKind('v1', 'Pod', field(2, container, volume))).toEqual({
      spec: {
        containers: [{ name: 'c', resources: { limits: { cpu: '100m' } } }],
        volumes: [{ name: 'v', configMap: { name: 'map', defaultMode: 0 } }],
      },
    })
    const ports = [
      field(1, number(3, 80), field(4, number(1, 0), number(2, 8080))),
      field(1, number(3, 81), field(4, number(1, 1), field(3, 'http'))),
    ]
    expect(decodeKind('v1', 'Service', field(2, ...ports))).toEqual({
      spec: {
        ports: [
          { port: 80, targetPort: 8080 },
          { port: 81, targetPort: 'http' },
        ],
      },
    })
    const times = [field(3, number(1, 1_700_000_000), number(2, 7_000)), field(4, number(1, 1_700_000_000))]
    expect(decodeKind('coordination.k8s.io/v1', 'Lease', field(2, ...times))).toEqual({
      spec: { acquireTime: '2023-11-14T22:13:20.000007Z', renewTime: '2023-11-14T22:13:20.000000Z' },
    })
    expect(decodeKind('v1', 'ConfigMap', meta(field(8, number(1, 1_700_000_000))))).toEqual({
      metadata: { creationTimestamp: '2023-11-14T22:13:20Z' },
    })
  })

  it('take numbers of a list packed or one by one', () => {
    const groups = (part: Buffer) => decodeKind('v1', 'Pod', field(2, field(14, part)))
    expect(groups(Buffer.concat([number(4, 1), number(4, 300)]))).toEqual(groups(field(4, Buffer.from([1, 0xac, 2]))))
    expect(groups(number(4, 1))).toEqual({ spec: { securityContext: { supplementalGroups: [1] } } })
  })

  it('pass over fields of newer versions', () => {
    const newer = [
      field(900, 'x'),
      number(901, 1),
      Buffer.from([0xb5, 0x38, 1, 2, 3, 4]),
      Buffer.from([0xb1, 0x38, 1, 2, 3, 4, 5, 6, 7, 8]),
    ]
    expect(decodeKind('v1', 'ConfigMap', Buffer.concat([...newer, meta(field(1, 'm'))]))).toEqual({ metadata: { name: 'm' } })
  })

  it.each([
    ['a cut-off text', field(1, 'name').subarray(0, 3), 'unexpected EOF'],
    ['a cut-off number', Buffer.from([0x20, 0x80]), 'unexpected EOF'],
    ['a number without end', Buffer.from([0x20, ...Array<number>(11).fill(0xff)]), 'proto: integer overflow'],
    ['a length beyond all bounds', Buffer.from([0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f]), 'unexpected EOF'],
    ['a negative length', Buffer.from([0x0a, ...Array<number>(9).fill(0xff), 0x01]), 'unexpected EOF'],
    ['a field 0', Buffer.from([0x02, 0x00]), 'illegal tag 0'],
    ['a group', Buffer.from([0x0b, 0x0c]), 'illegal wireType 3'],
    ['another type', number(1, 1), 'proto: wrong wireType = 0 for field Metadata'],
    ['a time in no year', field(1, field(8, number(1, 2n ** 62n))), 'a time is out of range'],
  ])('are refused with %s', (_what, bytes, why) => {
    expect(() => decodeKind('v1', 'ConfigMap', bytes)).toThrow(why)
    expect(() => decodeKind('v1', 'ConfigMap', bytes)).toThrow(ProtobufError)
  })

  it('are refused when they are deeper than any object', () => {
    let schema = field(5, 'object')
    for (let depth = 0; depth < 5_000; depth++) schema = field(28, schema)
    const crd = field(2, field(7, field(1, 'v1'), field(4, field(1, schema))))
    expect(() => decodeKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition', crd)).toThrow('nested more than 200 levels deep')
    const json = field(8, field(1, '['.repeat(100_000)))
    const deep = field(2, field(7, field(4, field(1, json))))
    expect(() => decodeKind('apiextensions.k8s.io/v1', 'CustomResourceDefinition', deep)).toThrow('nested more than 500 levels deep')
  })

  it('are read in full or refused, whatever their bytes are', () => {
    const kinds = [
      ['v1', 'Pod'],
      ['v1', 'ConfigMap'],
      ['apps/v1', 'Deployment'],
      ['apiextensions.k8s.io/v1', 'CustomResourceDefinition'],
    ] as const
    // Random bytes seldom get far; random trees of fields do.
    const { tree } = fc.letrec<{ tree: Buffer }>((tie) => ({
      tree: fc
        .array(
          fc.oneof(
            { depthSize: 'small' },
            fc.tuple(fc.integer({ min: 1, max: 45 }), fc.string()).map(([at, text]) => field(at, text)),
            fc
              .tuple(fc.integer({ min: 1, max: 45 }), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))
              .map(([at, value]) => number(at, value)),
            fc.tuple(fc.integer({ min: 1, max: 45 }), tie('tree')).map(([at, inner]) => field(at, inner)),
            fc.uint8Array({ maxLength: 4 }).map((bytes) => Buffer.from(bytes)),
          ),
          { maxLength: 6 },
        )
        .map((parts) => Buffer.concat(parts)),
    }))
    fc.assert(
      fc.property(tree, fc.constantFrom(...kinds), (bytes, [apiVersion, kind]) => {
        try {
          const decoded = decodeKind(apiVersion, kind, bytes)
          expect(JSON.parse(JSON.stringify(decoded))).toEqual(decoded)
        } catch (error) {
          expect(error).toBeInstanceOf(ProtobufError)
        }
      }),
      { numRuns: 1_000 },
    )
  })

  it('refer to messages that are there', () => {
    const seen = new Set<string>()
    const walk = (message: string) => {
      if (seen.has(message)) return
      seen.add(message)
      for (const { type } of fieldsOf(message).values()) if (type.includes('.') && !SPECIAL.test(type)) walk(type)
    }
    for (const kind of ['ConfigMap', 'Pod', 'Node', 'DeleteOptions', 'Binding']) walk(messageOfKind('v1', kind) ?? kind)
    expect(seen.size).toBeGreaterThan(100)
    expect(messageOfKind('v1', 'constructor')).toBeUndefined()
    expect(decodeKind('v1', 'Nothing', Buffer.alloc(0))).toBeUndefined()
  })
})

const SPECIAL = /Quantity|IntOrString|\.Time|MicroTime|FieldsV1|RawExtension/

describe('the envelope', () => {
  const type = field(1, field(1, 'v1'), field(2, 'ConfigMap'))

  it('names the object', () => {
    const body = Buffer.concat([Buffer.from('k8s\0'), type, field(2, 'raw'), field(3, ''), field(4, '')])
    expect(readEnvelope(body)).toEqual({ apiVersion: 'v1', kind: 'ConfigMap', raw: Buffer.from('raw') })
  })

  it.each([
    ['', 'empty data'],
    ['k8s', 'does not appear to be a protobuf message, expected prefix [107 56 115 0]'],
    ['{"kind":"ConfigMap"}', 'does not appear to be a protobuf message'],
    ['k8s\0', 'empty body'],
    ['k8s\0\x0a\x7f', 'unexpected EOF'],
  ])('is refused for %j', (text, why) => {
    expect(() => readEnvelope(Buffer.from(text))).toThrow(why)
  })
})
