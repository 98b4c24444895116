"""How pods are reached.

Written in the notation of `notation`; facts alone, no behaviour.
"""

from __future__ import annotations

from typing import Final

TEXT: Final = """
Service kind -- A stable name and address for a set of pods.
  spec ServiceSpec -- How they are reached.
  status ServiceStatus -- What was observed.

ServiceSpec
  type string = "ClusterIP" -- ClusterIP, NodePort, LoadBalancer or ExternalName.
  allocateLoadBalancerNodePorts *bool
  clusterIP string -- Virtual address; None for a headless service.
  clusterIPs []string; externalIPs []string
  externalName string -- DNS name that an ExternalName service stands for.
  externalTrafficPolicy string -- Cluster or Local.
  healthCheckNodePort int32
  internalTrafficPolicy *string -- Cluster or Local.
  ipFamilies []string; ipFamilyPolicy *string; loadBalancerClass *string; loadBalancerIP string
  loadBalancerSourceRanges []string
  ports [port,protocol]ServicePort ~port -- Ports of the service.
  publishNotReadyAddresses bool -- Whether pods that are not ready are listed too.
  selector {}string atomic -- Labels of the pods that serve.
  sessionAffinity string = "None" -- ClientIP or None.
  sessionAffinityConfig *SessionAffinityConfig; trafficDistribution *string

ServicePort
  name string; appProtocol *string
  nodePort int32 -- Port of every node.
  port! int32 -- Port of the service.
  protocol string = "TCP" -- TCP, UDP or SCTP.
  targetPort intstr -- Port of the pods, by number or name.

SessionAffinityConfig
  clientIP *ClientIPConfig

ClientIPConfig
  timeoutSeconds *int32 = 10800

ServiceStatus
  conditions [type]Condition; loadBalancer LoadBalancerStatus

LoadBalancerStatus
  ingress []LoadBalancerIngress

LoadBalancerIngress
  hostname string; ip string; ipMode *string; ports []PortStatus

PortStatus
  error *string; port! int32; protocol! string

Endpoints kind -- Addresses behind a service; see EndpointSlice.
  subsets []EndpointSubset -- Addresses with the ports they share.

EndpointSubset
  addresses []EndpointAddress; notReadyAddresses []EndpointAddress; ports []EndpointPort

EndpointAddress
  hostname string; ip! string; nodeName *string; targetRef *ObjectReference

EndpointPort atomic
  name string; appProtocol *string; port! int32; protocol string = "TCP"

EndpointSlice kind -- Some of the addresses behind a service.
  addressType! string -- IPv4, IPv6 or FQDN.
  endpoints []Endpoint -- The addresses.
  ports []EndpointSlicePort -- The ports that they share.

Endpoint
  addresses! []string; conditions EndpointConditions; deprecatedTopology {}string; hints *EndpointHints
  hostname *string; nodeName *string; targetRef *ObjectReference; zone *string

EndpointConditions
  ready *bool; serving *bool; terminating *bool

EndpointHints
  forNodes []ForNode; forZones []ForZone

ForNode
  name! string

ForZone
  name! string

EndpointSlicePort atomic
  name *string = ""; appProtocol *string; port *int32; protocol *string = "TCP"

Ingress kind -- Routes HTTP requests from outside to services.
  spec IngressSpec -- The routes.
  status IngressStatus -- What was observed.

IngressSpec
  defaultBackend *IngressBackend; ingressClassName *string; rules []IngressRule; tls []IngressTLS

IngressBackend
  resource *TypedLocalObjectReference; service *IngressServiceBackend

IngressServiceBackend
  name! string; port ServiceBackendPort

ServiceBackendPort
  name string; number int32

IngressRule
  host string; http *HTTPIngressRuleValue

HTTPIngressRuleValue
  paths! []HTTPIngressPath

HTTPIngressPath
  backend! IngressBackend; path string; pathType! *string

IngressTLS
  hosts []string; secretName string

IngressStatus
  loadBalancer IngressLoadBalancerStatus

IngressLoadBalancerStatus
  ingress []IngressLoadBalancerIngress

IngressLoadBalancerIngress
  hostname string; ip string; ports []IngressPortStatus

IngressPortStatus
  error *string; port! int32; protocol! string

IngressClass kind -- Who carries out ingresses of this class.
  spec IngressClassSpec -- The controller and its parameters.

IngressClassSpec
  controller string; parameters *IngressClassParametersReference

IngressClassParametersReference
  name! string; apiGroup *string; kind! string; namespace *string; scope *string = "Cluster"

NetworkPolicy kind -- Says which connections pods may have.
  spec NetworkPolicySpec -- The rules.

NetworkPolicySpec
  egress []NetworkPolicyEgressRule; ingress []NetworkPolicyIngressRule; podSelector LabelSelector
  policyTypes []string

NetworkPolicyEgressRule
  ports []NetworkPolicyPort; to []NetworkPolicyPeer

NetworkPolicyPort
  endPort *int32; port *intstr; protocol *string = "TCP"

NetworkPolicyPeer
  ipBlock *IPBlock; namespaceSelector *LabelSelector; podSelector *LabelSelector

IPBlock
  cidr! string; except []string

NetworkPolicyIngressRule
  from []NetworkPolicyPeer; ports []NetworkPolicyPort
"""
