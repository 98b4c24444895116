"""Containers and what is said of one.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Container -- One program of a pod.
  name! string -- How the container is called within its pod.
  args []string -- Arguments, instead of the image's own.
  command []string -- Program and first arguments, instead of the image's entry point.
  env [name]EnvVar -- Environment variables.
  envFrom []EnvFromSource -- Sources of many environment variables.
  image string -- Image to run.
  imagePullPolicy string -- Always, Never or IfNotPresent.
  lifecycle *Lifecycle -- What to do after it starts and before it stops.
  livenessProbe *Probe -- Tells whether it must be restarted.
  ports [containerPort,protocol]ContainerPort ~containerPort -- Ports that the container listens on.
  readinessProbe *Probe -- Tells whether it may be sent requests.
  resizePolicy []ContainerResizePolicy
  resources ResourceRequirements -- How much of the node it needs and may take.
  restartPolicy *string -- Always makes an init container a sidecar.
  restartPolicyRules []ContainerRestartRule
  securityContext *SecurityContext -- Rights of its processes.
  startupProbe *Probe -- Tells whether it has started; the other probes wait for it.
  stdin bool -- Whether it has a standard input.
  stdinOnce bool
  terminationMessagePath string = "/dev/termination-log" -- File whose end is shown as the reason of its end.
  terminationMessagePolicy string = "File" -- File or FallbackToLogsOnError.
  tty bool -- Whether it has a terminal.
  volumeDevices [devicePath]VolumeDevice
  volumeMounts [mountPath]VolumeMount -- Where volumes appear in its file system.
  workingDir string -- Directory that the program starts in.

EnvVar
  name! string
  value string -- The text; may refer to earlier variables as $(NAME).
  valueFrom *EnvVarSource -- Where the text comes from.

EnvVarSource
  configMapKeyRef *ConfigMapKeySelector; fieldRef *ObjectFieldSelector; fileKeyRef *FileKeySelector
  resourceFieldRef *ResourceFieldSelector; secretKeyRef *SecretKeySelector

ConfigMapKeySelector atomic
  key! string; name string; optional *bool

FileKeySelector atomic
  key! string; optional *bool; path! string; volumeName! string

SecretKeySelector atomic
  key! string; name string; optional *bool

EnvFromSource
  configMapRef *ConfigMapEnvSource; prefix string; secretRef *SecretEnvSource

ConfigMapEnvSource
  name string; optional *bool

SecretEnvSource
  name string; optional *bool

Lifecycle
  postStart *LifecycleHandler; preStop *LifecycleHandler; stopSignal *string

LifecycleHandler
  exec *ExecAction; httpGet *HTTPGetAction; sleep *SleepAction; tcpSocket *TCPSocketAction

ExecAction
  command []string

HTTPGetAction
  host string; httpHeaders []HTTPHeader; path string = "/"; port! intstr; scheme string = "HTTP"

HTTPHeader
  name! string; value! string

SleepAction
  seconds! int64

TCPSocketAction
  host string; port! intstr

Probe -- How a container is examined; exactly one way.
  exec *ExecAction -- Command that must exit with 0.
  failureThreshold int32 = 3 -- Failures in a row that count.
  grpc *GRPCAction -- gRPC health service that must say SERVING.
  httpGet *HTTPGetAction -- Request that must be answered with 2xx or 3xx.
  initialDelaySeconds int32 -- Seconds after the start before the first examination.
  periodSeconds int32 = 10 -- Seconds between two examinations.
  successThreshold int32 = 1 -- Successes in a row that count.
  tcpSocket *TCPSocketAction -- Port that must accept connections.
  terminationGracePeriodSeconds *int64
  timeoutSeconds int32 = 1 -- Seconds after which an examination has failed.

GRPCAction
  port! int32; service *string = ""

ContainerPort
  name string
  containerPort! int32 -- Port number within the pod.
  hostIP string
  hostPort int32 -- Port number on the node.
  protocol string = "TCP" -- TCP, UDP or SCTP.

ContainerResizePolicy
  resourceName! string; restartPolicy! string

ResourceRequirements
  claims [name]ResourceClaim ~-
  limits {}quantity -- What may be used at most.
  requests {}quantity -- What is set aside; the limits if not said.

ResourceClaim
  name! string; request string

ContainerRestartRule
  action! string; exitCodes *ContainerRestartRuleOnExitCodes

ContainerRestartRuleOnExitCodes
  operator! string; values [set]int32

SecurityContext
  allowPrivilegeEscalation *bool -- Whether a process may gain more rights than its parent.
  appArmorProfile *AppArmorProfile
  capabilities *Capabilities -- Capabilities to add and to drop.
  privileged *bool -- Whether it may do all that the node's root may.
  procMount *string
  readOnlyRootFilesystem *bool -- Whether its root file system cannot be written.
  runAsGroup *int64 -- Group id of its processes.
  runAsNonRoot *bool -- Whether root is refused.
  runAsUser *int64 -- User id of its processes.
  seLinuxOptions *SELinuxOptions; seccompProfile *SeccompProfile; windowsOptions *WindowsSecurityContextOptions

AppArmorProfile
  type! string; localhostProfile *string

Capabilities
  add []string; drop []string

SELinuxOptions
  type string; level string; role string; user string

SeccompProfile
  type! string; localhostProfile *string

WindowsSecurityContextOptions
  gmsaCredentialSpec *string; gmsaCredentialSpecName *string; hostProcess *bool; runAsUserName *string

VolumeDevice
  name! string; devicePath! string

VolumeMount
  name! string -- The volume.
  mountPath! string -- Where it appears.
  mountPropagation *string
  readOnly bool -- Whether it cannot be written.
  recursiveReadOnly *string
  subPath string -- Path within the volume.
  subPathExpr string

EphemeralContainer -- A container added to a running pod to look into it.
  name! string; args []string; command []string; env [name]EnvVar; envFrom []EnvFromSource; image string
  imagePullPolicy string; lifecycle *Lifecycle; livenessProbe *Probe
  ports [containerPort,protocol]ContainerPort ~containerPort; readinessProbe *Probe
  resizePolicy []ContainerResizePolicy; resources ResourceRequirements; restartPolicy *string
  restartPolicyRules []ContainerRestartRule; securityContext *SecurityContext; startupProbe *Probe; stdin bool
  stdinOnce bool
  targetContainerName string -- Container whose processes it sees.
  terminationMessagePath string = "/dev/termination-log"; terminationMessagePolicy string = "File"; tty bool
  volumeDevices [devicePath]VolumeDevice; volumeMounts [mountPath]VolumeMount; workingDir string
"""
