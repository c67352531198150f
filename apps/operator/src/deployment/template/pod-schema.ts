/*
 * The schema of PodTemplateSpec, as a table: one line per type, `field:Type`. `*` marks what must be set, `Type[]` a list that is
 * replaced as a whole, `Type[key,…]` a list whose items are identified (and merged) by their keys, `Type{}` a map, `=A|B` one of these
 * words. Names in lower case are scalars. A test compares the table with what the API server itself publishes.
 *
 * Sources of volumes that hardly anybody uses are `any`: the API server checks them.
 */
const LINES = {
  PodTemplateSpec: 'metadata:TemplateMeta spec:PodSpec',
  TemplateMeta: 'labels:text{} annotations:text{} creationTimestamp:any',
  PodSpec: `affinity:Affinity automountServiceAccountToken:bool containers:Container[name] dnsConfig:PodDNSConfig
    dnsPolicy:=ClusterFirst|ClusterFirstWithHostNet|Default|None enableServiceLinks:bool hostAliases:HostAlias[ip] hostIPC:bool
    hostNetwork:bool hostPID:bool hostUsers:bool hostname:label hostnameOverride:text imagePullSecrets:LocalObjectReference[name]
    initContainers:Container[name] nodeName:text nodeSelector:text{} os:PodOS overhead:quantity{}
    preemptionPolicy:=Never|PreemptLowerPriority priority:int32 priorityClassName:text readinessGates:PodReadinessGate[]
    resourceClaims:PodResourceClaim[name] resources:ResourceRequirements restartPolicy:=Always runtimeClassName:text schedulerName:text
    schedulingGates:PodSchedulingGate[name] securityContext:PodSecurityContext serviceAccount:text serviceAccountName:text
    setHostnameAsFQDN:bool shareProcessNamespace:bool subdomain:label terminationGracePeriodSeconds:int64 tolerations:Toleration[]
    topologySpreadConstraints:TopologySpreadConstraint[topologyKey,whenUnsatisfiable] volumes:Volume[name]`,
  Container: `args:text[] command:text[] env:EnvVar[name] envFrom:EnvFromSource[] image:text imagePullPolicy:=Always|IfNotPresent|Never
    lifecycle:Lifecycle livenessProbe:Probe name*:label ports:ContainerPort[containerPort,protocol] readinessProbe:Probe
    resizePolicy:ContainerResizePolicy[] resources:ResourceRequirements restartPolicy:=Always|Never|OnFailure restartPolicyRules:any[]
    securityContext:SecurityContext startupProbe:Probe stdin:bool stdinOnce:bool terminationMessagePath:text
    terminationMessagePolicy:=File|FallbackToLogsOnError tty:bool volumeDevices:VolumeDevice[devicePath]
    volumeMounts:VolumeMount[mountPath] workingDir:text`,
  EnvVar: 'name*:variable value:text valueFrom:EnvVarSource',
  EnvVarSource: `configMapKeyRef:KeySelector fieldRef:ObjectFieldSelector fileKeyRef:FileKeySelector
    resourceFieldRef:ResourceFieldSelector secretKeyRef:KeySelector`,
  KeySelector: 'key*:text name:text optional:bool',
  ObjectFieldSelector: 'apiVersion:text fieldPath*:text',
  FileKeySelector: 'key*:text optional:bool path*:text volumeName*:text',
  ResourceFieldSelector: 'containerName:text divisor:quantity resource*:text',
  EnvFromSource: 'configMapRef:EnvSource prefix:text secretRef:EnvSource',
  EnvSource: 'name:text optional:bool',
  Lifecycle: 'postStart:LifecycleHandler preStop:LifecycleHandler stopSignal:text',
  LifecycleHandler: 'exec:ExecAction httpGet:HTTPGetAction sleep:SleepAction tcpSocket:TCPSocketAction',
  ExecAction: 'command:text[]',
  HTTPGetAction: 'host:text httpHeaders:HTTPHeader[] path:text port*:portOrName scheme:=HTTP|HTTPS',
  HTTPHeader: 'name*:text value*:text',
  SleepAction: 'seconds*:seconds',
  TCPSocketAction: 'host:text port*:portOrName',
  GRPCAction: 'port*:port service:text',
  Probe: `exec:ExecAction failureThreshold:count grpc:GRPCAction httpGet:HTTPGetAction initialDelaySeconds:count periodSeconds:count
    successThreshold:count tcpSocket:TCPSocketAction terminationGracePeriodSeconds:seconds timeoutSeconds:count`,
  ContainerPort: 'containerPort*:port hostIP:text hostPort:portOrZero name:portName protocol:=TCP|UDP|SCTP',
  ContainerResizePolicy: 'resourceName*:text restartPolicy*:=NotRequired|RestartContainer',
  ResourceRequirements: 'claims:ResourceClaim[] limits:quantity{} requests:quantity{}',
  ResourceClaim: 'name*:text request:text',
  SecurityContext: `allowPrivilegeEscalation:bool appArmorProfile:AppArmorProfile capabilities:Capabilities privileged:bool
    procMount:=Default|Unmasked readOnlyRootFilesystem:bool runAsGroup:id runAsNonRoot:bool runAsUser:id seLinuxOptions:SELinuxOptions
    seccompProfile:SeccompProfile windowsOptions:any`,
  PodSecurityContext: `appArmorProfile:AppArmorProfile fsGroup:id fsGroupChangePolicy:=Always|OnRootMismatch runAsGroup:id
    runAsNonRoot:bool runAsUser:id seLinuxChangePolicy:=MountOption|Recursive seLinuxOptions:SELinuxOptions
    seccompProfile:SeccompProfile supplementalGroups:id[] supplementalGroupsPolicy:=Merge|Strict sysctls:Sysctl[] windowsOptions:any`,
  AppArmorProfile: 'localhostProfile:text type*:=Localhost|RuntimeDefault|Unconfined',
  SeccompProfile: 'localhostProfile:text type*:=Localhost|RuntimeDefault|Unconfined',
  Capabilities: 'add:text[] drop:text[]',
  SELinuxOptions: 'level:text role:text type:text user:text',
  Sysctl: 'name*:text value*:text',
  VolumeDevice: 'devicePath*:text name*:text',
  VolumeMount: `mountPath*:mountPath mountPropagation:=None|HostToContainer|Bidirectional name*:text readOnly:bool
    recursiveReadOnly:=Disabled|IfPossible|Enabled subPath:text subPathExpr:text`,
  PodDNSConfig: 'nameservers:ip[] options:PodDNSConfigOption[] searches:text[]',
  PodDNSConfigOption: 'name:text value:text',
  HostAlias: 'hostnames:text[] ip*:ip',
  LocalObjectReference: 'name:text',
  PodOS: 'name*:=linux|windows',
  PodReadinessGate: 'conditionType*:text',
  PodResourceClaim: 'name*:label resourceClaimName:text resourceClaimTemplateName:text',
  PodSchedulingGate: 'name*:text',
  Toleration: `effect:=NoSchedule|PreferNoSchedule|NoExecute key:text operator:=Exists|Equal tolerationSeconds:int64 value:text`,
  TopologySpreadConstraint: `labelSelector:LabelSelector matchLabelKeys:text[] maxSkew*:positive minDomains:positive
    nodeAffinityPolicy:=Honor|Ignore nodeTaintsPolicy:=Honor|Ignore topologyKey*:labelKey
    whenUnsatisfiable*:=DoNotSchedule|ScheduleAnyway`,
  Affinity: 'nodeAffinity:NodeAffinity podAffinity:PodAffinity podAntiAffinity:PodAffinity',
  NodeAffinity: `preferredDuringSchedulingIgnoredDuringExecution:PreferredSchedulingTerm[]
    requiredDuringSchedulingIgnoredDuringExecution:NodeSelector`,
  PreferredSchedulingTerm: 'preference*:NodeSelectorTerm weight*:weight',
  NodeSelector: 'nodeSelectorTerms*:NodeSelectorTerm[]',
  NodeSelectorTerm: 'matchExpressions:NodeSelectorRequirement[] matchFields:NodeSelectorRequirement[]',
  NodeSelectorRequirement: 'key*:text operator*:=In|NotIn|Exists|DoesNotExist|Gt|Lt values:text[]',
  PodAffinity: `preferredDuringSchedulingIgnoredDuringExecution:WeightedPodAffinityTerm[]
    requiredDuringSchedulingIgnoredDuringExecution:PodAffinityTerm[]`,
  WeightedPodAffinityTerm: 'podAffinityTerm*:PodAffinityTerm weight*:weight',
  PodAffinityTerm: `labelSelector:LabelSelector matchLabelKeys:text[] mismatchLabelKeys:text[] namespaceSelector:LabelSelector
    namespaces:text[] topologyKey*:labelKey`,
  LabelSelector: 'matchExpressions:LabelSelectorRequirement[] matchLabels:text{}',
  LabelSelectorRequirement: 'key*:labelKey operator*:=In|NotIn|Exists|DoesNotExist values:text[]',
  Volume: `awsElasticBlockStore:any azureDisk:any azureFile:any cephfs:any cinder:any configMap:ConfigMapVolume csi:CSIVolume
    downwardAPI:DownwardAPIVolume emptyDir:EmptyDirVolume ephemeral:EphemeralVolume fc:any flexVolume:any flocker:any
    gcePersistentDisk:any gitRepo:any glusterfs:any hostPath:HostPathVolume image:ImageVolume iscsi:any name*:label nfs:NFSVolume
    persistentVolumeClaim:ClaimVolume photonPersistentDisk:any portworxVolume:any projected:ProjectedVolume quobyte:any rbd:any
    scaleIO:any secret:SecretVolume storageos:any vsphereVolume:any`,
  ConfigMapVolume: 'defaultMode:mode items:KeyToPath[] name:text optional:bool',
  SecretVolume: 'defaultMode:mode items:KeyToPath[] optional:bool secretName:text',
  KeyToPath: 'key*:text mode:mode path*:innerPath',
  CSIVolume: 'driver*:text fsType:text nodePublishSecretRef:LocalObjectReference readOnly:bool volumeAttributes:text{}',
  DownwardAPIVolume: 'defaultMode:mode items:DownwardAPIFile[]',
  DownwardAPIFile: 'fieldRef:ObjectFieldSelector mode:mode path*:innerPath resourceFieldRef:ResourceFieldSelector',
  EmptyDirVolume: 'medium:text sizeLimit:quantity',
  EphemeralVolume: 'volumeClaimTemplate:any',
  HostPathVolume: `path*:text type:=DirectoryOrCreate|Directory|FileOrCreate|File|Socket|CharDevice|BlockDevice`,
  ImageVolume: 'pullPolicy:=Always|IfNotPresent|Never reference:text',
  NFSVolume: 'path*:text readOnly:bool server*:text',
  ClaimVolume: 'claimName*:text readOnly:bool',
  ProjectedVolume: 'defaultMode:mode sources:VolumeProjection[]',
  VolumeProjection: `clusterTrustBundle:any configMap:ConfigMapProjection downwardAPI:DownwardAPIProjection podCertificate:any
    secret:SecretProjection serviceAccountToken:TokenProjection`,
  ConfigMapProjection: 'items:KeyToPath[] name:text optional:bool',
  DownwardAPIProjection: 'items:DownwardAPIFile[]',
  SecretProjection: 'items:KeyToPath[] name:text optional:bool',
  TokenProjection: 'audience:text expirationSeconds:int64 path*:innerPath',
} as const

export type PodType = keyof typeof LINES

export interface FieldType {
  /** A type of the table, or a scalar. */
  readonly type: string
  readonly shape: 'one' | 'list' | 'map'
  /** The keys that identify the items of a list; none for a list that is one value. */
  readonly keys: readonly string[]
  readonly required: boolean
}

export type Fields = ReadonlyMap<string, FieldType>

const TABLE: ReadonlyMap<string, Fields> = new Map(Object.entries(LINES).map(([type, line]) => [type, parseLine(line)]))

export const POD_TYPES: readonly string[] = Object.keys(LINES)

/** Undefined for a scalar. */
export function fieldsOf(type: string): Fields | undefined {
  return TABLE.get(type)
}

function parseLine(line: string): Fields {
  return new Map(
    line.split(/\s+/).map((entry) => {
      const [, field = '', star, type = '', list, map] = /^(\w+)(\*)?:([^[{]+)(\[.*\])?(\{\})?$/.exec(entry) ?? []
      const keys = list?.slice(1, -1).split(',').filter(Boolean) ?? []
      return [field, { type, shape: list ? 'list' : map ? 'map' : 'one', keys, required: star !== undefined }] as const
    }),
  )
}
