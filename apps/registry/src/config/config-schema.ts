import { claimsSchema, sourceSpecSchema } from '@thv/catalog/sources/fetch/source-config'
import Type, { type Static } from 'typebox'
import type { Schema } from './check-shape.ts'

/*
 * The configuration file. Descriptions and defaults are what the reference shows. A key that has a default and is required by the schema
 * may be left out: it is filled in.
 */

const closed = { additionalProperties: false }

const duration = (description: string, options: { default?: string; minDuration?: string; maxDuration?: string } = {}) =>
  Type.String({ format: 'go-duration', description, ...options })
const text = (description: string, options: { default?: string; minLength?: number } = {}) =>
  Type.String({ minLength: 1, description, ...options })
const optionalText = (description: string) => Type.Optional(text(description))
const flag = (description: string, otherwise: boolean) => Type.Boolean({ description, default: otherwise })
const bytes = (description: string, otherwise: number) => Type.Integer({ description, default: otherwise, minimum: 1_024 })

const name = (description: string) => Type.String({ minLength: 1, description })

const sourceSchema = Type.Object(
  { name: name('DNS label, different from all other sources.'), ...sourceSpecSchema.properties },
  { ...closed, description: 'A place that data come from.' },
)

const registrySchema = Type.Object(
  {
    name: name(
      'DNS label, different from all other registries; `v0`, `v0.1` and `x` are taken. Part of the address: `/registry/NAME/v0.1/servers`.',
    ),
    sources: Type.Optional(
      Type.Array(Type.String(), { description: 'Names of sources. Of servers with the same name the one of the first source is served.' }),
    ),
    ...sourceSpecSchema.properties,
    claims: Type.Optional({
      ...claimsSchema,
      description:
        'Who sees the registry: a value, or any of several, per claim. Without claims everybody, but with `auth.authz` super admins only.',
    }),
  },
  { ...closed, description: 'A named list of sources, or (in the short form) a source and its registry in one.' },
)

const providerSchema = Type.Object(
  {
    name: text('For logs; different from all other providers.'),
    issuerUrl: text('Issuer of the tokens. https, except on this machine or with `THV_REGISTRY_INSECURE_URL=true`.'),
    audience: text('Must be among the audiences of a token.'),
    jwksUrl: optionalText('Where the keys are. Found by discovery when left out.'),
    introspectionUrl: optionalText('Where tokens that are no JWT are asked about (RFC 7662).'),
    clientId: optionalText('Who asks there.'),
    clientSecretFile: optionalText('Absolute path of the file with the secret of the client.'),
    caCertPath: optionalText('Absolute path of a PEM bundle that signs the certificate of the provider.'),
    authTokenFile: optionalText('Absolute path of a file with a bearer token that discovery and keys are asked with.'),
    allowPrivateIP: flag('The provider may be at an address of a private network.', false),
  },
  closed,
)

const claimMaps = (description: string) =>
  Type.Optional(Type.Array(claimsSchema, { description: `${description} A list of claims: one of them must fit in all its parts.` }))

const authSchema = Type.Object(
  {
    mode: Type.Union([Type.Literal('anonymous'), Type.Literal('oauth')], {
      default: 'oauth',
      description:
        '`anonymous` disables authentication; `oauth` requires a bearer token. The flag `--auth-mode` and the variable win over the file.',
    }),
    publicPaths: Type.Array(Type.String({ pattern: '^/', patternMessage: 'must begin with /' }), {
      default: [],
      description:
        'Further paths that need no token for reading, with everything below them; claims hide nothing there, and what needs a role needs a token all the same. `/openapi.json`, `/openapi.yaml` and `/.well-known` never need one.',
    }),
    writeTokenFile: optionalText(
      'In mode `anonymous` only: absolute path of a file with a token. Writes must then send it as a bearer token; reads need none. Read for every write.',
    ),
    oauth: Type.Optional(
      Type.Object(
        {
          resourceUrl: optionalText('Address of this server as clients see it: the resource of RFC 9728.'),
          scopesSupported: Type.Optional(
            Type.Array(
              Type.String({
                pattern: '^[\\x21\\x23-\\x5b\\x5d-\\x7e]+$',
                patternMessage: 'must be a scope: printable ASCII without spaces, quotes and backslashes',
              }),
              {
                description:
                  'Scopes that the metadata of RFC 9728 offers to clients. They are not checked: what a token may do follows from `auth.authz`.',
              },
            ),
          ),
          realm: text('Realm of the challenges.', { default: 'mcp-registry' }),
          providers: Type.Array(providerSchema, { default: [], description: 'Who issues tokens; tried in order.' }),
        },
        { ...closed, description: 'Needed in mode `oauth`.' },
      ),
    ),
    authz: Type.Optional(
      Type.Object(
        {
          roles: Type.Object(
            {
              superAdmin: claimMaps('May do everything and sees everything.'),
              manageSources: claimMaps('May make, change and remove sources.'),
              manageRegistries: claimMaps('May make, change and remove registries.'),
              manageEntries: claimMaps('May publish, edit and delete servers.'),
            },
            { ...closed, default: {}, description: 'Who has which role, by the claims of their token.' },
          ),
        },
        { ...closed, description: 'Without it everybody with a token may do everything, and claims hide nothing.' },
      ),
    ),
  },
  { ...closed, default: {}, description: 'Who may ask.' },
)

const databaseSchema = Type.Object(
  {
    host: text('Host name, address, or absolute path of the folder with the socket.'),
    port: Type.Integer({ minimum: 1, maximum: 65_535, default: 5432, description: 'Port.' }),
    database: text('Name of the database.'),
    user: text('User.'),
    password: Type.Optional(
      Type.String({
        description: 'Password. Otherwise the file of `PGPASSFILE`, then `~/.pgpass`, then none. Better taken from a variable.',
      }),
    ),
    migrationUser: optionalText('User who changes the schema; the same as `user` when left out.'),
    migrationPassword: Type.Optional(Type.String({ description: 'Password of that user; `password` when the users are the same.' })),
    sslMode: Type.Union(
      [
        Type.Literal('disable'),
        Type.Literal('allow'),
        Type.Literal('prefer'),
        Type.Literal('require'),
        Type.Literal('verify-ca'),
        Type.Literal('verify-full'),
      ],
      {
        default: 'require',
        description:
          'As in libpq: whether to encrypt, and whether to check the certificate and the host in it. `prefer` encrypts if the server can, `allow` only if it must; both check nothing.',
      },
    ),
    sslRootCert: optionalText('Absolute path of the CA bundle for `verify-ca` and `verify-full`.'),
    maxOpenConns: Type.Integer({ minimum: 2, maximum: 1_000, default: 10, description: 'Connections at most.' }),
    maxIdleConns: Type.Integer({ minimum: 0, maximum: 1_000, default: 2, description: 'Connections that are kept open.' }),
    connMaxLifetime: duration('A connection is replaced after this time.', { default: '30m', minDuration: '1s', maxDuration: '24h' }),
  },
  { ...closed, description: 'PostgreSQL. Without it the embedded store is used, which is for one server alone.' },
)

const storageSchema = Type.Object(
  {
    path: optionalText('File of the embedded store; `registry.db` in the data folder when left out.'),
    memory: flag('Keep everything in memory: published servers are lost at the end.', false),
  },
  { ...closed, description: 'The embedded store (SQLite). Not beside `database`.' },
)

const httpSchema = Type.Object(
  {
    cors: Type.Optional(
      Type.Object(
        {
          origins: Type.Array(Type.String(), {
            minItems: 1,
            description:
              'Web pages that may read answers, such as `https://ui.example.com`, and ask for changes; `*` for all, which in mode `anonymous` may only read.',
          }),
          maxAge: duration('How long browsers remember the permission.', { default: '10m', minDuration: '0s', maxDuration: '24h' }),
        },
        { ...closed, description: 'Cross-origin requests. Left out: none are allowed.' },
      ),
    ),
    allowedHosts: Type.Optional(
      Type.Array(text('A host name.'), {
        minItems: 1,
        description:
          'Names under which clients reach the server, without port; others are refused. Left out: all, but in mode `anonymous` on a loopback address only names of this machine.',
      }),
    ),
    compression: flag('gzip for clients that take it.', true),
    cacheMaxAge: duration('How long clients may use an answer without asking again (`Cache-Control`); 0 makes them ask.', {
      default: '0s',
      minDuration: '0s',
      maxDuration: '24h',
    }),
    publicHealth: flag('`/health`, `/readiness` and `/version` also on the public address.', true),
    maxBodyBytes: bytes('Largest body of a request.', 1 << 20),
  },
  { ...closed, default: {}, description: 'How answers are given.' },
)

const syncSchema = Type.Object(
  {
    parallel: Type.Integer({
      minimum: 1,
      maximum: 64,
      default: 4,
      description: 'Sources that sync at the same time, without those that have not answered for two seconds.',
    }),
    leaseDuration: duration('How long the others wait for a server that holds a source and is silent.', {
      default: '30s',
      minDuration: '5s',
      maxDuration: '1h',
    }),
    retryInterval: duration('From a failure to the next attempt; doubles with each failure up to the interval of the source.', {
      default: '10s',
      minDuration: '100ms',
      maxDuration: '1h',
    }),
    jitter: Type.Number({ minimum: 0, maximum: 1, default: 0.1, description: 'Share of an interval that is random.' }),
    allowedFolders: Type.Array(text('A folder.'), {
      default: [],
      description:
        'Folders of this machine. `file.path` of a source that is made through the admin API must lie below one of them; sources of this file may be anywhere.',
    }),
    allowPrivateAddresses: flag('Sources may be at addresses of private networks and of this machine.', false),
    maxFileBytes: bytes('Largest document that is fetched.', 256 * 1024 * 1024),
  },
  { ...closed, default: {}, description: 'How sources are fetched.' },
)

const configSchema = Type.Object(
  {
    registryName: optionalText('What this server is called when it says who it is.'),
    syncRequest: optionalText(
      'Any text. Another one makes every source of this file due once; `/status/sources` on the internal address says when that is done.',
    ),
    sources: Type.Optional(Type.Array(sourceSchema, { description: 'Places that data come from.' })),
    registries: Type.Optional(Type.Array(registrySchema, { description: 'What is served, and under which names.' })),
    auth: authSchema,
    database: Type.Optional(databaseSchema),
    storage: Type.Optional(storageSchema),
    http: httpSchema,
    sync: syncSchema,
  },
  closed,
)

/** For what walks schemas. */
export const CONFIG_SHAPE = configSchema as unknown as Schema

/** A file after its shape has been checked: defaults are there, rules between keys have not been looked at. */
export type ConfigFile = Static<typeof configSchema>
export type DatabaseFile = Static<typeof databaseSchema>
export type AuthFile = Static<typeof authSchema>
export type RegistryFile = Static<typeof registrySchema>
export type SourceFile = Static<typeof sourceSchema>
