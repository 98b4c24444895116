// The webhook of cert-manager, which reviews Issuers and Certificates before they are stored.
package main

import (
	"flag"
	"log"

	"github.com/cert-manager/cert-manager/internal/apis/config/shared"
	config "github.com/cert-manager/cert-manager/internal/apis/config/webhook"
	"github.com/cert-manager/cert-manager/internal/webhook"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
)

func main() {
	port := flag.Int("port", 0, "where it listens")
	certificate := flag.String("certificate", "", "the file of its certificate")
	key := flag.String("key", "", "the file of its key")
	flag.Parse() // --kubeconfig is a flag of controller-runtime
	ctrl.SetLogger(klog.Background())
	server, err := webhook.NewCertManagerWebhookServer(klog.Background(), config.WebhookConfiguration{
		SecurePort:           int32(*port),
		KubeConfig:           flag.Lookup("kubeconfig").Value.String(),
		MetricsListenAddress: "0",
		TLSConfig: shared.TLSConfig{
			Filesystem: shared.FilesystemServingConfig{CertFile: *certificate, KeyFile: *key},
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	if err := server.Run(ctrl.SetupSignalHandler()); err != nil {
		log.Fatal(err)
	}
}
