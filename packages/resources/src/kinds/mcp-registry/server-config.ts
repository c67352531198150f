import { unionRules } from '../../schema/cel.ts'
import { bool, duration, int32, list, obj, oneOf, opt, port, str } from '../../schema/nodes.ts'
import { configMapKeySelector, secretKeyRef } from '../../shared/references.ts'

/** How the registry server stores its data and who may read it. */

export const databaseConfig = () =>
  obj('PostgreSQL database of the registry server. Without it the server keeps its data in its pod.', {
    host: opt(str('Host name of the database.', { default: 'postgres', minLength: 1, maxLength: 253 })),
    port: opt(port('Port of the database.', { default: 5432 })),
    user: opt(str('User for reading and writing.', { default: 'db_app', minLength: 1, maxLength: 63 })),
    migrationUser: opt(str('User that may change the schema.', { default: 'db_migrator', minLength: 1, maxLength: 63 })),
    database: opt(str('Name of the database.', { default: 'registry', minLength: 1, maxLength: 63 })),
    sslMode: opt(
      oneOf('TLS mode of the connection.', ['disable', 'allow', 'prefer', 'require', 'verify-ca', 'verify-full'], {
        default: 'prefer',
      }),
    ),
    maxOpenConns: opt(int32('Maximum number of connections.', { default: 10, minimum: 1 })),
    maxIdleConns: opt(int32('Maximum number of idle connections.', { default: 2, minimum: 0 })),
    connMaxLifetime: opt(duration('Age at which a connection is replaced.', { default: '30m' })),
    dbAppUserPasswordSecretRef: secretKeyRef('Secret with the password of user.'),
    dbMigrationUserPasswordSecretRef: secretKeyRef('Secret with the password of migrationUser.'),
  })

const oauthProvider = () =>
  obj('An identity provider whose tokens are accepted.', {
    name: str('Name of the provider, unique in this list.', { minLength: 1, maxLength: 63 }),
    issuerUrl: str('Issuer of the tokens.', { minLength: 1, maxLength: 2048, pattern: '^https?://.*' }),
    audience: str('Audience that a token must have.', { minLength: 1, maxLength: 2048 }),
    jwksUrl: opt(str('Address of the keys, if it is not discovered.', { maxLength: 2048, pattern: '^https?://.*' })),
    clientId: opt(str('Client id for introspection.', { maxLength: 255 })),
    clientSecretRef: opt(secretKeyRef('Secret with the client secret for introspection.')),
    caCertRef: opt(configMapKeySelector('ConfigMap with the CA certificates of the provider.')),
    caCertPath: opt(str('File in the pod with the CA certificates of the provider.', { maxLength: 4096 })),
    authTokenRef: opt(secretKeyRef('Secret with a token for reading the keys.')),
    authTokenFile: opt(str('File in the pod with a token for reading the keys.', { maxLength: 4096 })),
    introspectionUrl: opt(str('Address of token introspection.', { maxLength: 2048, pattern: '^https?://.*' })),
    allowPrivateIP: opt(bool('Whether the provider may have a private address.', { default: false })),
  })

export const authConfig = () =>
  obj(
    'Authentication for the registry API.',
    {
      mode: opt(
        oneOf('anonymous disables authentication; oauth requires a valid token.', ['anonymous', 'oauth'], { default: 'anonymous' }),
      ),
      writeTokenSecretRef: opt(
        secretKeyRef('Secret with a token that publishing and administration need; reading needs none. Mode anonymous only.'),
      ),
      oauth: opt(
        obj('Token validation.', {
          resourceUrl: opt(str('Public URL of the registry.', { maxLength: 2048, pattern: '^https?://.*' })),
          providers: list('Identity providers, tried in order.', oauthProvider(), { merge: ['name'], minItems: 1, maxItems: 16 }),
          scopesSupported: opt(
            list(
              'Scopes that the metadata offers. Default mcp-registry:read and mcp-registry:write.',
              str('A scope.', { minLength: 1, maxLength: 256 }),
              {
                maxItems: 64,
              },
            ),
          ),
          realm: opt(str('Realm in the challenge.', { default: 'mcp-registry', minLength: 1, maxLength: 255 })),
        }),
      ),
    },
    {
      rules: [
        ...unionRules('mode', { oauth: 'oauth' }),
        {
          rule: "!has(self.writeTokenSecretRef) || !has(self.mode) || self.mode == 'anonymous'",
          message: 'writeTokenSecretRef belongs to mode anonymous: with oauth the claims of a token decide',
        },
      ],
    },
  )
