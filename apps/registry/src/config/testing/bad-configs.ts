/* biome-ignore-all lint/suspicious/noTemplateCurlyInString: the files hold such */

const SOURCE = 'sources: [{name: a, managed: {}}]\n'
const REGISTRY = 'registries: [{name: default, sources: [a]}]\n'
const ANONYMOUS = 'auth: {mode: anonymous}\n'
const PARTS = `${SOURCE}${REGISTRY}`
const REST = `${REGISTRY}${ANONYMOUS}`
/** A good file. */
const BASE = `${PARTS}${ANONYMOUS}`
const HOURLY = '    syncPolicy: {interval: 1h}\n'
const GIT = '    git:\n      repository: https://git.example.com/r\n'
const OAUTH = `${PARTS}auth:\n  mode: oauth\n  oauth:\n    providers:\n`
const PROVIDER = '      - name: idp\n        issuerUrl: https://idp.example.com\n        audience: registry\n'
const DATABASE = 'database:\n  host: db\n  user: app\n  database: registry\n'

/** Files, what is wrong with them, and their problems as `line:column path: message`. The variable SECRET is set. */
export const BAD_CONFIGS: readonly (readonly [title: string, yaml: string, ...problems: string[]])[] = [
  ['a tab as indentation', 'sources:\n\t- name: a\n', '2:1 : a tab is no indentation in YAML: use spaces'],
  ['a key twice', `${BASE}http:\n  compression: true\n  compression: false\n`, '6:3 : the same key stands here twice'],
  [
    'a quote that is not closed',
    `registryName: "demo\n${BASE}`,
    '5:1 : is not YAML: something is missing here, such as a closing quote, a colon or a comma',
  ],
  [
    'a bracket that is not closed',
    'sources: [{name: a, managed: {}}\n',
    '2:1 : is not YAML: the indentation does not fit, or a bracket is not closed',
  ],
  ['two documents', `${BASE}---\n${BASE}`, '4:1 : the file holds more than one YAML document'],
  [
    'a mapping in a text',
    `registryName: a: b\n${BASE}`,
    '1:15 : is not YAML: a mapping cannot begin here; text with ": " in it needs quotes',
  ],
  ['a list instead of a mapping', '- sources\n- registries\n', '1:1 : must be a mapping of keys to values'],
  ['a text instead of a mapping', 'hello\n', '1:1 : must be a mapping of keys to values'],
  ['a reserved character', `registryName: @demo\n${BASE}`, '1:15 : is not YAML: text that begins with this character needs quotes'],
  ['an alias without anchor', `registryName: *name\n${BASE}`, '1:15 registryName: the alias has no anchor before it'],
  ['a tag', `registryName: !secret demo\n${BASE}`, '1:15 : YAML tags are not used here'],
  ['a tag of YAML', `registryName: !!binary ZGVtbw==\n${BASE}`, '1:24 registryName: YAML tags are not used here'],
  ['a merge key', `${BASE}http:\n  <<: {compression: true}\n`, '5:3 http."<<": merge keys are not used here: write the keys out'],
  ['a mapping as key', `${BASE}? {a: 1}\n: 2\n`, '4:3 : a key must be a text'],
  [
    'an alias of itself',
    `${BASE}http: &http\n  cors: *http\n`,
    '5:3 : the file is too large or nested too deeply, at the latest when its aliases are followed',
  ],
  [
    'nothing at all',
    '',
    '1:1 registries: at least one registry must be configured',
    '1:1 sources: at least one source must be configured',
    '1:1 auth.oauth.providers: mode oauth needs at least one provider; "auth: {mode: anonymous}" disables authentication',
  ],
  [
    'an empty list of sources',
    `sources: []\n${REST}`,
    '1:1 sources: at least one source must be configured',
    '2:40 registries[0].sources[0]: there is no source with this name',
  ],
  ['an empty list of registries', `${SOURCE}registries: []\n${ANONYMOUS}`, '2:1 registries: at least one registry must be configured'],
  ['an empty key', `${SOURCE}registries:\n${ANONYMOUS}`, '2:1 registries: must be a list, and is empty'],
  ['a key in another case', `Sources: []\n${BASE}`, '1:1 Sources: is not known; did you mean "sources"?'],
  ['a key with a slip', `${BASE}storag:\n  memory: true\n`, '4:1 storag: is not known; did you mean "storage"?'],
  [
    'a key that is far from all',
    `${BASE}kitchen: 7\n`,
    '4:1 kitchen: is not known; known are registryName, syncRequest, sources, registries, auth, database, storage, http, sync',
  ],
  ['a key with a slip further down', `${BASE}sync:\n  paralel: 3\n`, '5:3 sync.paralel: is not known; did you mean "parallel"?'],
  [
    'a mapping instead of a list',
    `sources: {name: a}\n${REST}`,
    '1:1 sources: must be a list, not a mapping',
    '2:40 registries[0].sources[0]: there is no source with this name',
  ],
  ['a list instead of a block', `${BASE}http: [compression]\n`, '4:1 http: must be a mapping, not a list'],
  ['a text instead of a number', `${BASE}sync:\n  parallel: many\n`, '5:13 sync.parallel: must be a whole number, not "many"'],
  ['a number that is too large', `${BASE}sync:\n  parallel: 65\n`, '5:13 sync.parallel: must be from 1 to 64'],
  ['a number that is not whole', `${BASE}sync:\n  parallel: 1.5\n`, '5:13 sync.parallel: must be a whole number'],
  ['a number that is too small', `${BASE}http:\n  maxBodyBytes: 1\n`, '5:17 http.maxBodyBytes: must be at least 1024'],
  ['a share over 1', `${BASE}sync:\n  jitter: 2\n`, '5:11 sync.jitter: must be from 0 to 1'],
  [
    'a text instead of a switch',
    `${BASE}http:\n  compression: sometimes\n`,
    '5:16 http.compression: must be true or false, not "sometimes"',
  ],
  ['a word of old YAML', `${BASE}http:\n  compression: yes\n`, '5:16 http.compression: must be true or false, not "yes"'],
  ['a number instead of a text', `registryName: 7\n${BASE}`, '1:15 registryName: must be a text: put it in quotes'],
  ['an empty text', `registryName: ""\n${BASE}`, '1:15 registryName: must not be empty'],
  [
    'a duration without unit',
    `${BASE}sync:\n  retryInterval: "10"\n`,
    '5:18 sync.retryInterval: must be a duration such as 30s, 15m or 1h30m',
  ],
  [
    'a duration as a number',
    `${BASE}sync:\n  retryInterval: 10\n`,
    '5:18 sync.retryInterval: must be a duration such as 30s, 15m or 1h30m',
  ],
  ['a duration that is too short', `${BASE}sync:\n  leaseDuration: 1s\n`, '5:18 sync.leaseDuration: must be at least 5s'],
  ['a duration that is too long', `${BASE}http:\n  cacheMaxAge: 48h\n`, '5:16 http.cacheMaxAge: must be at most 24h'],
  [
    'telemetry',
    `${BASE}telemetry:\n  enabled: true\n`,
    '4:1 telemetry: is not built yet: metrics are at /metrics of the internal address; remove it',
  ],
  ['audit', `${BASE}audit: {enabled: true}\n`, '4:1 audit: is not built yet: remove it'],
  [
    'a namespace of a kubernetes source',
    `sources:\n  - name: a\n    kubernetes: {namespaces: [A_B]}\n${REST}`,
    '3:31 sources[0].kubernetes.namespaces[0]: must be the name of a namespace: at most 63 lower-case letters, digits and hyphens',
  ],
  [
    'two clusters in one registry without names',
    `sources:\n  - {name: a, kubernetes: {}}\n  - {name: b, kubernetes: {clusterName: x, kubeconfig: {path: /k}}}\nregistries: [{name: r, sources: [a, b]}]\n${ANONYMOUS}`,
    '4:14 registries[0]: lists kubernetes sources of several clusters: give each a clusterName of its own',
  ],
  [
    'a selector of a kubernetes source',
    `sources:\n  - name: a\n    kubernetes: {labelSelector: 'a in ('}\n${REST}`,
    '3:33 sources[0].kubernetes.labelSelector: label selector "a in (": found "", expected a value',
  ],
  ['the storage of old releases', `${BASE}fileStorage: {baseDir: ./data}\n`, '4:1 fileStorage: is not offered: use storage.path'],
  [
    'credentials from a cloud',
    `${BASE}${DATABASE}  dynamicAuth: {awsRdsIam: {region: detect}}\n`,
    '8:3 database.dynamicAuth: is not offered: use database.password or a pgpass file',
  ],
  [
    'the limit of other releases',
    `${BASE}${DATABASE}  maxMetaSize: 1\n`,
    '8:3 database.maxMetaSize: is not offered: use sync.maxFileBytes and http.maxBodyBytes',
  ],
  [
    'scopes',
    `${OAUTH}${PROVIDER}    scopesSupported: [read, "a b"]\n`,
    '10:29 auth.oauth.scopesSupported[1]: must be a scope: printable ASCII without spaces, quotes and backslashes',
  ],
  [
    'a source without a name',
    `sources:\n  - managed: {}\n${REST}`,
    '2:5 sources[0].name: is required',
    '3:40 registries[0].sources[0]: there is no source with this name',
  ],
  [
    'a source with a bad name',
    `sources: [{name: My_Source, managed: {}}]\nregistries: [{name: default, sources: [My_Source]}]\n${ANONYMOUS}`,
    '1:18 sources[0].name: must be a DNS label: at most 63 lower-case letters, digits and hyphens, with a letter or digit at both ends',
  ],
  [
    'a source without a type',
    `sources:\n  - name: a\n${HOURLY}${REST}`,
    '2:5 sources[0]: must have exactly one of git, api, file, kubernetes and managed',
  ],
  [
    'a source with two types',
    `sources:\n  - name: a\n${GIT}    managed: {}\n${HOURLY}${REST}`,
    '2:5 sources[0]: must have exactly one of git, api, file, kubernetes and managed, not git and managed',
  ],
  [
    'a managed source that is empty',
    `sources:\n  - name: a\n    managed:\n${REST}`,
    '3:5 sources[0].managed: must be a mapping, and is empty; write {} for an empty one',
  ],
  [
    'a managed source with something in it',
    `sources:\n  - name: a\n    managed: {writable: true}\n${REST}`,
    '3:15 sources[0].managed.writable: is not known: nothing belongs here',
  ],
  [
    'a managed source with an interval',
    `sources:\n  - name: a\n    managed: {}\n${HOURLY}${REST}`,
    '4:5 sources[0].syncPolicy: has no meaning for a managed source, which is never fetched',
  ],
  [
    'two managed sources',
    `sources: [{name: a, managed: {}}, {name: b, managed: {}}]\n${REST}`,
    '1:45 sources[1].managed: at most one managed source is allowed, found 2',
  ],
  [
    'two sources of one name',
    `sources:\n  - {name: a, managed: {}}\n  - name: a\n    file: {path: /x.json}\n${HOURLY}${REST}`,
    '3:11 sources[1].name: is the name of sources[0] already',
  ],
  [
    'git without a repository',
    `sources:\n  - name: a\n    git: {branch: main}\n${HOURLY}${REST}`,
    '3:5 sources[0].git.repository: is required',
  ],
  [
    'git with another scheme',
    `sources:\n  - name: a\n    git:\n      repository: ssh://git@example.com/r\n${HOURLY}${REST}`,
    '4:19 sources[0].git.repository: must be an absolute http or https URL',
  ],
  [
    'git with branch and tag',
    `sources:\n  - name: a\n${GIT}      branch: main\n      tag: v1\n${HOURLY}${REST}`,
    '3:5 sources[0].git: at most one of branch, tag and commit may be given, not branch and tag',
  ],
  [
    'git with a path that climbs',
    `sources:\n  - name: a\n${GIT}      path: ../secrets\n${HOURLY}${REST}`,
    '5:13 sources[0].git.path: must be a path inside the repository, without . and ..',
  ],
  [
    'git with half a login',
    `sources:\n  - name: a\n${GIT}      auth: {username: me}\n${HOURLY}${REST}`,
    '5:7 sources[0].git.auth.passwordFile: is required',
  ],
  [
    'git with a relative password file',
    `sources:\n  - name: a\n${GIT}      auth: {username: me, passwordFile: token}\n${HOURLY}${REST}`,
    '5:42 sources[0].git.auth.passwordFile: must be an absolute path',
  ],
  ['no interval', `sources:\n  - name: a\n${GIT}    syncPolicy: {}\n${REST}`, '5:5 sources[0].syncPolicy.interval: is required'],
  [
    'an interval with a slip',
    `sources:\n  - name: a\n${GIT}    syncPolicy: {intervall: 1h}\n${REST}`,
    '5:5 sources[0].syncPolicy.interval: is required',
    '5:18 sources[0].syncPolicy.intervall: is not known; did you mean "interval"?',
  ],
  [
    'an interval that is none',
    `sources:\n  - name: a\n${GIT}    syncPolicy:\n      interval: soon\n${REST}`,
    '6:17 sources[0].syncPolicy.interval: must be a duration such as 30s, 15m or 1h30m',
  ],
  [
    'an interval of nothing',
    `sources:\n  - name: a\n${GIT}    syncPolicy: {interval: 0s}\n${REST}`,
    '5:28 sources[0].syncPolicy.interval: must be at least 1s',
  ],
  ['api without an endpoint', `sources:\n  - name: a\n    api: {}\n${HOURLY}${REST}`, '3:5 sources[0].api.endpoint: is required'],
  [
    'api with the whole path',
    `sources:\n  - name: a\n    api:\n      endpoint: https://example.com/v0.1/servers\n${HOURLY}${REST}`,
    '4:17 sources[0].api.endpoint: must be the base address: /v0.1/servers is appended to it',
  ],
  [
    'api with a long time-out',
    `sources:\n  - name: a\n    api:\n      endpoint: https://example.com\n      timeout: 6m\n${HOURLY}${REST}`,
    '5:16 sources[0].api.timeout: must be at most 5m',
  ],
  [
    'a file with path and url',
    `sources:\n  - name: a\n    file:\n      path: /x\n      url: https://example.com/x\n${HOURLY}${REST}`,
    '3:5 sources[0].file: must have exactly one of path and url, not path and url',
  ],
  [
    'a file with data',
    `sources:\n  - name: a\n    file:\n      data: "{}"\n${HOURLY}${REST}`,
    '4:13 sources[0].file.data: can be given through the admin API only: use path or url',
  ],
  [
    'a file without anything',
    `sources:\n  - name: a\n    file: {}\n${HOURLY}${REST}`,
    '3:5 sources[0].file: must have exactly one of path and url',
  ],
  [
    'an unknown format',
    `sources:\n  - name: a\n${GIT}    format: oficial\n${HOURLY}${REST}`,
    '5:13 sources[0].format: must be auto, toolhive or upstream, not "oficial"',
  ],
  [
    'a pattern that is none',
    `sources:\n  - name: a\n${GIT}${HOURLY}    filter:\n      names:\n        include: ["["]\n${REST}`,
    "8:19 sources[0].filter.names.include[0]: is no pattern: has a '[' without ']'",
  ],
  [
    'a filter that is no list',
    `sources:\n  - name: a\n${GIT}${HOURLY}    filter:\n      tags:\n        exclude: beta\n${REST}`,
    '8:18 sources[0].filter.tags.exclude: must be a list, not a text',
  ],
  [
    'a claim that is a number',
    `sources:\n  - name: a\n${GIT}${HOURLY}    claims:\n      orgId: 7\n${REST}`,
    '7:14 sources[0].claims.orgId: must be a string or a list of strings, not a number',
  ],
  [
    'a registry of nothing',
    `${SOURCE}registries: [{name: default, sources: []}]\n${ANONYMOUS}`,
    '2:30 registries[0].sources: must name at least one source',
  ],
  [
    'a registry without sources',
    `${SOURCE}registries:\n  - name: default\n${ANONYMOUS}`,
    '3:5 registries[0].sources: must name at least one source',
  ],
  [
    'a registry of an unknown source',
    `sources: [{name: toolhive, managed: {}}]\nregistries:\n  - name: default\n    sources: [toolhiv]\n${ANONYMOUS}`,
    '4:15 registries[0].sources[0]: there is no source with this name; did you mean "toolhive"?',
  ],
  [
    'a registry with a source twice',
    `${SOURCE}registries:\n  - name: default\n    sources: [a, a]\n${ANONYMOUS}`,
    '4:18 registries[0].sources[1]: is listed twice',
  ],
  [
    'a registry with a reserved name',
    `${SOURCE}registries: [{name: x, sources: [a]}]\n${ANONYMOUS}`,
    '2:21 registries[0].name: is reserved: v0, v0.1 and x are part of the paths of the API',
  ],
  [
    'a registry with the name of a version',
    `${SOURCE}registries: [{name: v0.1, sources: [a]}]\n${ANONYMOUS}`,
    '2:21 registries[0].name: is reserved: v0, v0.1 and x are part of the paths of the API',
  ],
  [
    'a registry with capitals',
    `${SOURCE}registries: [{name: Default, sources: [a]}]\n${ANONYMOUS}`,
    '2:21 registries[0].name: must be a DNS label: at most 63 lower-case letters, digits and hyphens, with a letter or digit at both ends',
  ],
  [
    'two registries of one name',
    `${SOURCE}registries:\n  - {name: r, sources: [a]}\n  - {name: r, sources: [a]}\n${ANONYMOUS}`,
    '4:12 registries[1].name: is the name of registries[0] already',
  ],
  [
    'a registry with a claim that is a mapping',
    `${SOURCE}registries: [{name: r, sources: [a], claims: {team: {a: b}}}]\n${ANONYMOUS}`,
    '2:47 registries[0].claims.team: must be a string or a list of strings, not a mapping',
  ],
  [
    'a registry with an interval',
    `${SOURCE}registries:\n  - name: r\n    sources: [a]\n${HOURLY}${ANONYMOUS}`,
    '5:5 registries[0].syncPolicy: belongs to a source, not to a registry that lists sources',
  ],
  [
    'both forms',
    `${SOURCE}registries:\n  - name: r\n    sources: [a]\n  - name: s\n    managed: {}\n${ANONYMOUS}`,
    '6:5 registries[1].managed: cannot stand beside a list of sources: use one of the two forms for the whole file',
  ],
  [
    'both forms in the short one',
    `registries:\n  - name: r\n    managed: {}\n    sources: [r]\n${ANONYMOUS}`,
    '4:5 registries[0].sources: cannot stand in a file whose registries hold their sources themselves: use one of the two forms',
  ],
  [
    'the short form without a type in one',
    `registries:\n  - name: r\n    managed: {}\n  - name: s\n${ANONYMOUS}`,
    '4:5 registries[1]: must have exactly one of git, api, file, kubernetes and managed',
  ],
  ['a mode that is none', `${PARTS}auth:\n  mode: basic\n`, "4:9 auth.mode: invalid auth.mode: basic (must be 'anonymous' or 'oauth')"],
  [
    'oauth by default without providers',
    `${PARTS}`,
    '1:1 auth.oauth.providers: mode oauth needs at least one provider; "auth: {mode: anonymous}" disables authentication',
  ],
  [
    'oauth without providers',
    `${PARTS}auth:\n  mode: oauth\n  oauth: {realm: r}\n`,
    '5:3 auth.oauth.providers: mode oauth needs at least one provider; "auth: {mode: anonymous}" disables authentication',
  ],
  [
    'a provider without audience',
    `${OAUTH}      - name: idp\n        issuerUrl: https://idp.example.com\n`,
    '7:9 auth.oauth.providers[0].audience: is required',
  ],
  [
    'an issuer with http',
    `${OAUTH}      - name: idp\n        issuerUrl: http://idp.example.com\n        audience: registry\n`,
    '8:20 auth.oauth.providers[0].issuerUrl: must be https (http is for this machine, or with THV_REGISTRY_INSECURE_URL=true)',
  ],
  [
    'an issuer that is no address',
    `${OAUTH}      - name: idp\n        issuerUrl: idp.example.com\n        audience: registry\n`,
    '8:20 auth.oauth.providers[0].issuerUrl: must be an absolute http or https URL',
  ],
  [
    'an issuer with a password',
    `${OAUTH}      - name: idp\n        issuerUrl: https://me:secret@idp.example.com\n        audience: registry\n`,
    '8:20 auth.oauth.providers[0].issuerUrl: must not carry a user name or password',
  ],
  [
    'two providers of one name',
    `${OAUTH}${PROVIDER}${PROVIDER}`,
    '10:15 auth.oauth.providers[1].name: is the name of auth.oauth.providers[0] already',
  ],
  [
    'a relative secret file',
    `${OAUTH}${PROVIDER}        introspectionUrl: https://idp.example.com/i\n        clientId: c\n        clientSecretFile: secret\n`,
    '12:27 auth.oauth.providers[0].clientSecretFile: must be an absolute path',
  ],
  [
    'a client without a secret',
    `${OAUTH}${PROVIDER}        introspectionUrl: https://idp.example.com/i\n        clientId: c\n`,
    '7:9 auth.oauth.providers[0].clientSecretFile: is required: clientId and clientSecretFile go together',
  ],
  [
    'a client without introspection',
    `${OAUTH}${PROVIDER}        clientId: c\n        clientSecretFile: /s\n`,
    '10:19 auth.oauth.providers[0].clientId: is used for introspection only: introspectionUrl is missing',
  ],
  [
    'a relative file for the token of writers',
    `${PARTS}auth:\n  mode: anonymous\n  writeTokenFile: token\n`,
    '5:19 auth.writeTokenFile: must be an absolute path',
  ],
  [
    'a token for writers in mode oauth',
    `${OAUTH}${PROVIDER}  writeTokenFile: /run/token\n`,
    '10:19 auth.writeTokenFile: is for mode anonymous: in mode oauth the providers issue the tokens',
  ],
  ['an empty allowed folder', `${BASE}sync:\n  allowedFolders: ['']\n`, '5:20 sync.allowedFolders[0]: must not be empty'],
  ['a path that is none', `${PARTS}auth:\n  mode: anonymous\n  publicPaths: [health]\n`, '5:17 auth.publicPaths[0]: must begin with /'],
  [
    'paths that would open all, or nothing',
    `${PARTS}auth:\n  mode: anonymous\n  publicPaths: [/.., //, "/registry/*", /a%2Fb, /a?b, /good, /good/, /]\n`,
    ...['17', '22', '26', '41', '49'].map(
      (column, i) =>
        `5:${column} auth.publicPaths[${i}]: must be a plain path: no escapes, wildcards, query, "//", "." or ".."; all below it is public too`,
    ),
  ],
  [
    'an unknown role',
    `${PARTS}auth:\n  mode: anonymous\n  authz: {roles: {manageSource: [{a: b}]}}\n`,
    '5:19 auth.authz.roles.manageSource: is not known; did you mean "manageSources"?',
  ],
  [
    'a role without claims',
    `${PARTS}auth:\n  mode: anonymous\n  authz:\n    roles:\n      superAdmin:\n        - {}\n`,
    '8:11 auth.authz.roles.superAdmin[0]: has no claims, so it would match no caller',
  ],
  [
    'a role with a claim that is a number',
    `${PARTS}auth:\n  mode: anonymous\n  authz:\n    roles:\n      superAdmin:\n        - level: 7\n`,
    '8:18 auth.authz.roles.superAdmin[0].level: must be a string or a list of strings, not a number',
  ],
  [
    'a database without its parts',
    `${BASE}database: {}\n`,
    '4:1 database.host: is required',
    '4:1 database.database: is required',
    '4:1 database.user: is required',
  ],
  ['a port that is none', `${BASE}${DATABASE}  port: 70000\n`, '8:9 database.port: must be from 1 to 65535'],
  [
    'a TLS mode that is none',
    `${BASE}${DATABASE}  sslMode: maybe\n`,
    '8:12 database.sslMode: must be disable, allow, prefer, require, verify-ca or verify-full, not "maybe"',
  ],
  [
    'a CA that is not looked at',
    `${BASE}${DATABASE}  sslRootCert: /ca.pem\n`,
    '8:16 database.sslRootCert: is looked at only with sslMode verify-ca or verify-full',
  ],
  [
    'more idle than open connections',
    `${BASE}${DATABASE}  maxOpenConns: 2\n  maxIdleConns: 3\n`,
    '9:17 database.maxIdleConns: must not be more than maxOpenConns',
  ],
  [
    'a migration password without user',
    `${BASE}${DATABASE}  migrationPassword: x\n`,
    '8:22 database.migrationPassword: needs database.migrationUser',
  ],
  ['two stores', `${BASE}${DATABASE}storage: {memory: true}\n`, '8:1 storage: cannot stand beside database: PostgreSQL keeps everything'],
  ['a file in memory', `${BASE}storage:\n  memory: true\n  path: /x.db\n`, '6:9 storage.path: cannot stand beside storage.memory'],
  [
    'an origin with a path',
    `${BASE}http:\n  cors:\n    origins: ["https://ui.example.com/"]\n`,
    '6:15 http.cors.origins[0]: must be "*" or an origin such as https://ui.example.com, without a path',
  ],
  ['no origins', `${BASE}http:\n  cors: {origins: []}\n`, '5:10 http.cors.origins: must not be empty'],
  [
    'a host with a port',
    `${BASE}http:\n  allowedHosts: ["example.com:80"]\n`,
    '5:18 http.allowedHosts[0]: must be a host name without a port',
  ],
  [
    'a variable that is not set',
    `registryName: \${NOT_SET}\n${BASE}`,
    '1:15 registryName: the variable NOT_SET is not set; "${NOT_SET:-…}" would give another value',
  ],
  [
    'a variable without a name',
    `registryName: "\${}"\n${BASE}`,
    '1:15 registryName: after "${" must come the name of a variable and a closing brace; "$${" stands for the two characters themselves',
  ],
  [
    'a variable without an end',
    `registryName: "\${NAME"\n${BASE}`,
    '1:15 registryName: after "${" must come the name of a variable and a closing brace; "$${" stands for the two characters themselves',
  ],
  ['a variable that is no number', `${BASE}sync:\n  parallel: \${SECRET}\n`, '5:13 sync.parallel: must be a whole number'],
  [
    'a variable that is no address',
    `sources:\n  - name: a\n    git:\n      repository: \${SECRET}\n${HOURLY}${REST}`,
    '4:19 sources[0].git.repository: must be an absolute http or https URL',
  ],
  ['a variable that is no mode', `${PARTS}auth:\n  mode: \${SECRET}\n`, '4:9 auth.mode: must be anonymous or oauth'],
]
