import { exactlyOne, sameIfBoth } from '../../schema/cel.ts'
import { duration, list, map, obj, oneOf, opt, str } from '../../schema/nodes.ts'
import { configMapKeySelector, secretKeyRef } from '../../shared/references.ts'

/** Where registry data comes from: the parts that the `source` and the `registries` shape share. */

export const DEFAULT_DATA_KEY = 'registry.json'

export const format = () => oneOf('Format of the registry data.', ['toolhive', 'upstream'], { default: 'toolhive' })

export const gitSource = () =>
  obj(
    'A file in a git repository.',
    {
      repository: str('Address of the repository.', {
        minLength: 1,
        maxLength: 2048,
        pattern: '^(file:///|https?://|git@|ssh://|git://).*',
      }),
      branch: opt(str('Branch to read.', { minLength: 1, maxLength: 255 })),
      tag: opt(str('Tag to read.', { minLength: 1, maxLength: 255 })),
      commit: opt(str('Commit to read.', { minLength: 1, maxLength: 64 })),
      path: opt(str('Path of the file in the repository.', { default: DEFAULT_DATA_KEY, pattern: '^.*\\.json$', maxLength: 1024 })),
      auth: opt(
        obj('Credentials for HTTP basic authentication.', {
          username: str('User name.', { minLength: 1, maxLength: 255 }),
          passwordSecretRef: secretKeyRef('Secret that holds the password or access token.'),
        }),
      ),
    },
    { rules: [exactlyOne(['branch', 'tag', 'commit'], 'exactly one of branch, tag and commit must be set')] },
  )

export const apiSource = () =>
  obj('Another registry, read through its API.', {
    endpoint: str('Base address of the registry API.', { minLength: 1, maxLength: 2048, pattern: '^https?://.*' }),
  })

export const syncPolicy = () =>
  obj(
    'Schedule of reads. Without it, a source is read when it is added or changed, and when the annotation toolhive.stacklok.dev/sync-trigger gets another value. ConfigMaps are read whenever they change.',
    { interval: duration('Time between two reads, such as 1h.') },
  )

const patterns = (description: string) => list(description, str('Pattern or tag.', { minLength: 1, maxLength: 256 }), { maxItems: 500 })

export const filter = () =>
  obj('Selection of servers. Exclusion comes first; a server must pass both names and tags.', {
    names: opt(
      obj('By name, with * ? and [] as wildcards.', {
        include: opt(patterns('A server must match one of these, if there are any.')),
        exclude: opt(patterns('A server that matches one of these is dropped.')),
      }),
    ),
    tags: opt(
      obj('By tag, compared exactly.', {
        include: opt(patterns('A server must have one of these tags, if there are any.')),
        exclude: opt(patterns('A server that has one of these tags is dropped.')),
      }),
    ),
  })

const sourceConfigMap = (description: string) =>
  obj(description, {
    name: str('Name of the ConfigMap.', { minLength: 1, maxLength: 253 }),
    key: opt(str('Key that holds the data.', { default: DEFAULT_DATA_KEY, minLength: 1, maxLength: 253 })),
  })

/** One source that the operator itself reads. */
export const singleSource = () =>
  obj(
    'The one source of the registry, read by the operator and kept in a ConfigMap.',
    {
      type: opt(oneOf('Type of the source; may be left out.', ['configMap', 'configmap', 'git', 'api'])),
      format: opt(format()),
      configMap: opt(sourceConfigMap('A ConfigMap of the same namespace.')),
      configmap: opt(sourceConfigMap('Another spelling of configMap.')),
      git: opt(gitSource()),
      api: opt(apiSource()),
    },
    {
      rules: [
        sameIfBoth('configMap', 'configmap'),
        {
          rule: '[has(self.configMap) || has(self.configmap), has(self.git), has(self.api)].filter(x, x).size() == 1',
          message: 'exactly one of configMap, git and api must be set',
        },
        {
          rule: "!has(self.type) || (self.type == 'git' ? has(self.git) : self.type == 'api' ? has(self.api) : has(self.configMap) || has(self.configmap))",
          message: 'type must name the source that is set',
        },
      ],
    },
  )

const selectorOperators = ['In', 'NotIn', 'Exists', 'DoesNotExist'] as const

export const configMapSelector = () =>
  obj(
    'ConfigMaps of the same namespace, chosen by label and merged.',
    {
      matchLabels: opt(
        map('Labels that a ConfigMap must have, all of them.', str('Value of the label.', { maxLength: 63 }), {
          minProperties: 1,
          maxProperties: 64,
        }),
      ),
      matchExpressions: opt(
        list(
          'Conditions on labels that must all hold.',
          obj(
            'A condition on one label.',
            {
              key: str('Name of the label.', { minLength: 1, maxLength: 317 }),
              operator: oneOf('How the label is compared.', selectorOperators),
              values: opt(list('Values for In and NotIn.', str('Value of the label.', { maxLength: 63 }), { maxItems: 64 })),
            },
            {
              rules: [
                {
                  rule: "(self.operator == 'In' || self.operator == 'NotIn') == (has(self.values) && size(self.values) > 0)",
                  message: 'values must be set for In and NotIn, and only for them',
                },
              ],
            },
          ),
          { minItems: 1, maxItems: 64 },
        ),
      ),
      key: opt(str('Key within each ConfigMap that holds the data.', { default: DEFAULT_DATA_KEY, minLength: 1, maxLength: 253 })),
      conflictStrategy: opt(
        oneOf(
          'What happens to a server name that several ConfigMaps define: prefix renames each to CONFIGMAP/SERVER, priority keeps the one of the ConfigMap with the highest annotation toolhive.stacklok.dev/registry-priority (then the first name), error refuses the merge and keeps the last good data.',
          ['prefix', 'priority', 'error'],
          { default: 'prefix' },
        ),
      ),
    },
    {
      rules: [
        {
          rule: 'has(self.matchLabels) || has(self.matchExpressions)',
          message: 'at least one of matchLabels and matchExpressions must be set',
        },
        {
          rule: "has(self.matchLabels) || !has(self.matchExpressions) || self.matchExpressions.exists(e, e.operator == 'In' || e.operator == 'Exists')",
          message:
            'without matchLabels, at least one of matchExpressions must be In or Exists: the others match ConfigMaps without any label',
        },
      ],
    },
  )

/** One of several sources that the registry server reads. */
export const registryEntry = () =>
  obj(
    'One source of the registry.',
    {
      name: str('Name of the source, unique in this list.', { minLength: 1, maxLength: 42, pattern: '^[a-z0-9]([-a-z0-9]*[a-z0-9])?$' }),
      format: opt(format()),
      configMapRef: opt(configMapKeySelector('One ConfigMap of the same namespace.')),
      configMapSelector: opt(configMapSelector()),
      git: opt(gitSource()),
      api: opt(apiSource()),
      pvcRef: opt(
        obj('A file on a volume.', {
          claimName: str('Name of the PersistentVolumeClaim.', { minLength: 1, maxLength: 253 }),
          path: opt(str('Path of the file on the volume.', { default: DEFAULT_DATA_KEY, pattern: '^.*\\.json$', maxLength: 1024 })),
        }),
      ),
      managed: opt(obj('Servers that are published to this registry through its API.', {})),
      syncPolicy: opt(syncPolicy()),
      filter: opt(filter()),
    },
    {
      rules: [
        {
          rule: '[has(self.configMapRef), has(self.configMapSelector), has(self.git), has(self.api), has(self.pvcRef), has(self.managed)].filter(x, x).size() == 1',
          message: 'exactly one source type must be specified (configMapRef, configMapSelector, git, or api)',
        },
        {
          rule: '!has(self.managed) || (!has(self.syncPolicy) && !has(self.filter))',
          message: 'a managed entry is not fetched: it has neither syncPolicy nor filter',
        },
      ],
    },
  )

export const exportPolicy = () =>
  obj('Publishes servers of the cluster that ask for it with annotations or routes.', {
    mode: opt(
      oneOf(
        'Discovery mode: server (the registry server watches the cluster), operator (the operator writes a ConfigMap) or none.',
        ['server', 'operator', 'none'],
        {
          default: 'server',
        },
      ),
    ),
    namespaces: opt(
      list(
        'Namespaces to search; by default that of this object, "*" for all.',
        str('Name of a namespace, or *.', { minLength: 1, maxLength: 63, pattern: '^(\\*|[a-z0-9]([-a-z0-9]*[a-z0-9])?)$' }),
        {
          merge: 'set',
          maxItems: 256,
        },
      ),
    ),
    crossNamespaceGateway: opt(
      oneOf(
        'Permission that an HTTPRoute needs for a Gateway of another namespace: accepted by the Gateway, allowedRoutes of its listeners, or a referenceGrant. Default: referenceGrant in operator mode, accepted in server mode.',
        ['referenceGrant', 'allowedRoutes', 'accepted'],
      ),
    ),
  })

export const noSyncWithoutSource = [
  {
    rule: '!has(self.syncPolicy) || has(self.source)',
    message: 'syncPolicy belongs to source; with registries set it per registry',
    fieldPath: '.syncPolicy',
  },
  {
    rule: '!has(self.filter) || has(self.source)',
    message: 'filter belongs to source; with registries set it per registry',
    fieldPath: '.filter',
  },
]
