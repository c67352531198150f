import type { Static } from 'typebox'
import { unionRules } from '../../schema/cel.ts'
import { bool, duration, int32, list, obj, oneOf, opt, port, str } from '../../schema/nodes.ts'
import { compact } from '../../schema/normalize.ts'
import { secretKeyRef } from '../references.ts'

const address = (description: string) => str(description, { maxLength: 512 })

const tls = (description: string) =>
  obj(description, {
    caCertSecretRef: opt(secretKeyRef('Certificates to trust, in PEM form.')),
    insecureSkipVerify: opt(bool('Whether to skip certificate verification. For tests only.')),
  })

const sentinelConfig = () =>
  obj(
    'Redis Sentinel, to find the master.',
    {
      masterName: str('Name of the monitored master.', { minLength: 1, maxLength: 256 }),
      sentinelAddrs: opt(list('host:port of the sentinels.', str('host:port.', { minLength: 1, maxLength: 512 }), { maxItems: 32 })),
      sentinelService: opt(
        obj('Service in front of the sentinels.', {
          name: str('Name of the Service.', { minLength: 1, maxLength: 253 }),
          namespace: opt(str('Namespace of the Service; by default that of this object.', { maxLength: 253 })),
          port: opt(port('Port of the Service.', { default: 26379 })),
        }),
      ),
      db: opt(int32('Number of the database.', { minimum: 0, default: 0 })),
    },
    {
      rules: [
        {
          rule: '(has(self.sentinelAddrs) && size(self.sentinelAddrs) > 0) != has(self.sentinelService)',
          message: 'set exactly one of sentinelAddrs (not empty) and sentinelService',
        },
      ],
    },
  )

const redis = () =>
  obj(
    'Redis as the shared store.',
    {
      addr: opt(address('host:port of a single Redis or of a cluster.')),
      clusterMode: opt(bool('Whether addr is a Redis Cluster.')),
      sentinelConfig: opt(sentinelConfig()),
      aclUserConfig: obj('Credentials for Redis.', {
        usernameSecretRef: opt(secretKeyRef('User; the default user if not given.')),
        passwordSecretRef: secretKeyRef('Password.'),
      }),
      tls: opt(tls('TLS to Redis.')),
      sentinelTls: opt(tls('TLS to the sentinels.')),
      dialTimeout: opt(duration('Limit for connecting.', { default: '5s' })),
      readTimeout: opt(duration('Limit for reading.', { default: '3s' })),
      writeTimeout: opt(duration('Limit for writing.', { default: '3s' })),
    },
    {
      rules: [
        {
          rule: "(has(self.addr) && self.addr != '') != has(self.sentinelConfig)",
          message: 'set exactly one of addr (not empty) and sentinelConfig',
        },
        {
          rule: "!has(self.clusterMode) || !self.clusterMode || (has(self.addr) && self.addr != '')",
          message: 'clusterMode needs addr',
        },
        { rule: '!has(self.sentinelTls) || has(self.sentinelConfig)', message: 'sentinelTls needs sentinelConfig' },
      ],
    },
  )

/** Where the embedded authorization server keeps sessions and tokens. */
export const authServerStorage = () =>
  obj(
    'Storage of sessions and tokens. More than one replica needs redis.',
    {
      type: opt(oneOf('Kind of storage. With memory, everything is lost with the pod.', ['memory', 'redis'], { default: 'memory' })),
      redis: opt(redis()),
    },
    { rules: unionRules('type', { redis: 'redis' }) },
  )

export type AuthServerStorage = Static<ReturnType<typeof authServerStorage>>
type Redis = Static<ReturnType<typeof redis>>
type Sentinel = NonNullable<Redis['sentinelConfig']>

export interface CanonicalAuthServerStorage {
  type: 'memory' | 'redis'
  /** Set if type is redis. */
  redis?: CanonicalAuthServerRedis
}

/** Either `addr` or `sentinelConfig`. */
export interface CanonicalAuthServerRedis {
  addr?: string
  clusterMode: boolean
  sentinelConfig?: CanonicalSentinelConfig
  aclUserConfig: Redis['aclUserConfig']
  tls?: NonNullable<Redis['tls']>
  sentinelTls?: NonNullable<Redis['sentinelTls']>
  dialTimeout: string
  readTimeout: string
  writeTimeout: string
}

/** Either addresses or a Service. */
export interface CanonicalSentinelConfig {
  masterName: string
  sentinelAddrs: string[]
  sentinelService?: { name: string; namespace?: string; port: number }
  db: number
}

export function normaliseAuthServerStorage(value: AuthServerStorage | undefined): CanonicalAuthServerStorage {
  return compact({ type: value?.type ?? 'memory', redis: value?.redis && normaliseRedis(value.redis) })
}

function normaliseRedis(value: Redis): CanonicalAuthServerRedis {
  return compact({
    addr: value.addr || undefined,
    clusterMode: value.clusterMode ?? false,
    sentinelConfig: value.sentinelConfig && normaliseSentinel(value.sentinelConfig),
    aclUserConfig: value.aclUserConfig,
    tls: value.tls,
    sentinelTls: value.sentinelTls,
    dialTimeout: value.dialTimeout ?? '5s',
    readTimeout: value.readTimeout ?? '3s',
    writeTimeout: value.writeTimeout ?? '3s',
  })
}

function normaliseSentinel(value: Sentinel): CanonicalSentinelConfig {
  const service = value.sentinelService
  return compact({
    masterName: value.masterName,
    sentinelAddrs: value.sentinelAddrs ?? [],
    sentinelService: service && compact({ name: service.name, namespace: service.namespace || undefined, port: service.port ?? 26379 }),
    db: value.db ?? 0,
  })
}
